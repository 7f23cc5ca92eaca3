package watchcache

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/watchcache/podtest"
	"github.com/levelwire/levelwire/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pod = podtest.Pod

var podA, podB, podC = podtest.PodA, podtest.PodB, podtest.PodC

const (
	fieldNode  = podtest.FieldNode
	fieldPhase = podtest.FieldPhase
)

var (
	podResource  = podtest.PodResource
	nodeResource = podtest.NodeResource
	selecting    = podtest.Selecting
)

// objectOf is the pod as the cache decodes it.
func objectOf(t testing.TB, c *Cache, p pod, revision storage.Revision) *Object {
	t.Helper()
	o, err := c.Decode(p.Key(), p.Value(), revision)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// put is a change of a pod.
func put(t testing.TB, c *Cache, p pod, revision storage.Revision) Change {
	return Change{Key: p.Key(), Object: objectOf(t, c, p, revision), Revision: revision}
}

func gone(key string, revision storage.Revision) Change { return Change{Key: key, Revision: revision} }

// filled is a cache with the pods, each at revision 1, filled at 10.
func filled(t testing.TB, opts Options, pods ...pod) *Cache {
	t.Helper()
	c := New(podResource(), opts)
	slices.SortFunc(pods, func(a, b pod) int { return strings.Compare(a.Key(), b.Key()) })
	var objects []*Object
	for _, p := range pods {
		objects = append(objects, objectOf(t, c, p, 1))
	}
	if _, err := c.Fill(objects, 10); err != nil {
		t.Fatal(err)
	}
	return c
}

func watching(t testing.TB, c *Cache, opts WatchOptions) *Watcher {
	t.Helper()
	w, err := c.Watch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// drain reads all events that there are, a few at a time.
func drain(t testing.TB, w *Watcher) []Event {
	t.Helper()
	var all []Event
	var buf [3]Event
	for {
		n, err := w.Read(buf[:])
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		all = append(all, buf[:n]...)
	}
}

// eventStrings formats events as "ADDED a/x@5".
func eventStrings(events []Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key, e.Revision))
	}
	return out
}

func expect(t testing.TB, events []Event, want ...string) {
	t.Helper()
	if got := eventStrings(events); !slices.Equal(got, want) {
		t.Fatalf("events are\n%q, want\n%q", got, want)
	}
}

func rev(n int) storage.Revision { return storage.Revision(n) }

func revisions(s Snapshot) map[string]storage.Revision {
	out := map[string]storage.Revision{}
	for o := range s.Range("", "") {
		out[o.Key] = o.Revision
	}
	return out
}
