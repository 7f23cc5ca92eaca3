package watchcache

import (
	"fmt"
	"testing"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
)

// manyLabels returns a cache with a watcher of each of n labels, which a pod has.
func manyLabels(t testing.TB, n int) (*Cache, pod) {
	t.Helper()
	labelled := pod{Namespace: "one", Name: "a", Labels: map[string]string{}}
	for i := range n {
		labelled.Labels[fmt.Sprint("l", i)] = "x"
	}
	c := filled(t, Options{}, labelled)
	for key := range labelled.Labels {
		watching(t, c, WatchOptions{After: 10, Selection: selecting(t, "", "", key+"=x", "")})
	}
	return c, labelled
}

// TestEventsOfManyLabels: an event is in each bucket once, of labels that stay, come and go.
func TestEventsOfManyLabels(t *testing.T) {
	c, labelled := manyLabels(t, 40)
	before := objectOf(t, c, labelled, 11)
	for i := range 10 {
		delete(labelled.Labels, fmt.Sprint("l", i))
		labelled.Labels[fmt.Sprint("l", 10+i)] = "y"
	}
	after := objectOf(t, c, labelled, 12)
	for name, e := range map[string]*eventlog.Entry{
		"changed": {Object: after, Previous: before}, "created": {Object: before}, "deleted": {Previous: before}, "the same": {Object: before, Previous: before},
	} {
		seen := map[*bucket]int{}
		for _, b := range c.index.find(e, nil) {
			seen[b]++
		}
		for b, times := range seen {
			if times != 1 {
				t.Errorf("%s: the bucket of %s has it %d times", name, b.interest.Label, times)
			}
		}
		if len(seen) != 40 {
			t.Errorf("%s: in %d buckets, want 40", name, len(seen))
		}
	}
}

// BenchmarkEventOfManyLabels: what an event costs the feed grows with the labels, and not with their square.
func BenchmarkEventOfManyLabels(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, labelled := manyLabels(b, n)
			o := objectOf(b, c, labelled, 11)
			e := &eventlog.Entry{Object: o, Previous: o}
			var found []*bucket
			for b.Loop() {
				found = c.index.find(e, found[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/label")
		})
	}
}
