package read

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// followed is a window that is being followed in a bubble of synctest.
type followed struct {
	*fixture
	changes chan *WindowChange
	reads   int
	admit   func() // called before the list is read
	begun   atomic.Bool
	begins  atomic.Int64
	ended   chan error
	last    storage.Revision
}

// Begin implements WindowReader.
func (f *followed) Begin() {
	f.begins.Add(1)
	f.begun.Store(true)
}

// Admit implements WindowReader.
func (f *followed) Admit(context.Context) error {
	f.reads++
	f.begun.Store(true)
	if f.admit != nil {
		f.admit()
	}
	return nil
}

// Send implements WindowReader.
func (f *followed) Send(change *WindowChange) error {
	if !f.begun.Load() {
		f.t.Error("a change is sent out of turn")
	}
	f.changes <- change
	return nil
}

// End implements WindowReader.
func (f *followed) End() { f.begun.Store(false) }

// follow follows a window of a thousand pods, ns-000/pod-0000000 to ns-999/pod-0000999.
func follow(t *testing.T, window Window) *followed { return followSince(t, window, 0) }

// followSince is follow that has the first list wait for a revision.
func followSince(t *testing.T, window Window, revision storage.Revision) *followed {
	t.Helper()
	f := &followed{fixture: newFixture(t, func(s *setup) { s.unfed = true }), changes: make(chan *WindowChange, 1000), ended: make(chan error, 1), last: 1000}
	f.fillWithPods(1000)
	ctx, cancel := context.WithCancel(t.Context())
	windows := NewWindows(f.reader)
	go func() {
		f.ended <- windows.Follow(ctx, f.allPods(), &metav1.ListOptions{ResourceVersion: FormatResourceVersion(revision)}, window, f)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-f.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the follower ended with %v", err)
		}
	})
	return f
}

// apply changes a pod, or deletes it if node is "": as often as there are nodes, and all at once, so
// that the follower does not see only the first change.
func (f *followed) apply(namespace, name string, nodes ...string) {
	f.t.Helper()
	key := namespace + "/" + name
	changes := make([]watchcache.Change, len(nodes))
	for i, node := range nodes {
		f.last++
		changes[i] = watchcache.Change{Key: key, Revision: f.last}
		if node != "" {
			value := fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q},"spec":{"nodeName":%q}}`, name, namespace, node)
			object, err := f.cache.Decode(key, value, f.last)
			must(f.t, err)
			changes[i].Object = object
		}
	}
	f.cache.Apply(changes)
	f.cache.Advance(f.last)
}

// want waits for a while, and compares what was sent: the events, and the order after " | ".
func (f *followed) want(total int, want ...string) {
	f.t.Helper()
	time.Sleep(2 * followInterval) // of the bubble
	synctest.Wait()
	if f.begun.Load() {
		f.t.Error("the follower keeps its turn while it waits")
	}
	var got []string
	for len(f.changes) > 0 {
		change := <-f.changes
		var events, order []string
		for _, e := range change.Events {
			events = append(events, e.Type.String()+" "+e.Object.Attributes.Name)
		}
		for _, o := range change.Order {
			order = append(order, o.Attributes.Name)
		}
		text := strings.Join(events, ", ")
		if change.Order != nil {
			text += " | " + strings.Join(order, " ")
		}
		got = append(got, text)
		if change.Total != total {
			f.t.Errorf("%d objects, want %d", change.Total, total)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.t.Errorf("got %q, want %q", got, want)
	}
}

// TestWindowIsFollowed: changes of its objects are sent, others are not, and what shifts it makes
// a new order of which only the new objects are sent.
func TestWindowIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, Window{Offset: 1, Limit: 2})
		f.want(1000, "ADDED pod-0000001, ADDED pod-0000002 | pod-0000001 pod-0000002")
		for i := range 100 {
			f.apply("ns-500", "pod-0000500", fmt.Sprint("n", i))
		}
		f.want(1000)
		f.apply("ns-002", "pod-0000002", "first", "second")
		f.want(1000, "MODIFIED pod-0000002")
		if f.reads != 1 {
			t.Errorf("the list was read %d times for changes that move nothing", f.reads)
		}
		f.apply("ns-000", "pod-0", "n1")
		f.want(1001, "ADDED pod-0000000 | pod-0000000 pod-0000001")
		f.apply("ns-000", "pod-0000000", "")
		f.want(1000, "ADDED pod-0000002 | pod-0000001 pod-0000002")
		f.apply("ns-999", "pod-0000999", "")
		f.want(999, "")
		f.apply("ns-001", "pod-0000001", "", "again")
		f.want(999, "MODIFIED pod-0000001")
	})
}

// TestFollowerComputesOnlyForChanges: a follower takes no turn of other requests while nothing
// changes, neither at its begin nor after a change or a list.
func TestFollowerComputesOnlyForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, Window{Limit: 2})
		f.want(1000, "ADDED pod-0000000, ADDED pod-0000001 | pod-0000000 pod-0000001")
		total := 1000
		for _, step := range []struct {
			change func()
			want   []string
			turns  int64
		}{
			{change: func() {}},
			{change: func() { f.apply("ns-001", "pod-0000001", "n1") }, want: []string{"MODIFIED pod-0000001"}, turns: 1},
			{change: func() { f.apply("ns-001", "pod-0000001", "n2", "n3") }, want: []string{"MODIFIED pod-0000001"}, turns: 1},
			{
				change: func() { f.apply("ns-000", "pod-0000000", ""); total-- },
				want:   []string{"ADDED pod-0000002 | pod-0000001 pod-0000002"}, turns: 1,
			},
		} {
			before := f.begins.Load()
			step.change()
			f.want(total, step.want...)
			time.Sleep(time.Hour) // of the bubble
			if turns := f.begins.Load() - before; turns != step.turns {
				t.Errorf("%d turns for %q, want %d", turns, step.want, step.turns)
			}
		}
	})
}

// TestSortedWindowIsFollowed: a change that moves an object moves the window.
func TestSortedWindowIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, Window{Limit: 2, SortBy: "changed", Descending: true})
		f.want(1000, "ADDED pod-0000000, ADDED pod-0000001 | pod-0000000 pod-0000001")
		f.apply("ns-700", "pod-0000700", "moved")
		f.want(1000, "ADDED pod-0000700 | pod-0000700 pod-0000000")
	})
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, Window{Limit: 1, SortBy: "field:spec.nodeName"})
		f.want(1000, "ADDED pod-0000000 | pod-0000000")
		f.apply("ns-700", "pod-0000700", "a")
		f.want(1000, "ADDED pod-0000700 | pod-0000700")
		f.apply("ns-500", "pod-0000500", "z")
		f.want(1000)
	})
}

// TestFollowedWindowIsBounded: a thousand changes of one object in a second are a few events, and
// objects that come and go a few lists.
func TestFollowedWindowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, Window{Limit: 1})
		synctest.Wait()
		<-f.changes
		for i := range 1000 {
			f.apply("ns-000", "pod-0000000", fmt.Sprint("n", i))
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if n := len(f.changes); n < 1 || n > 3 {
			t.Errorf("%d changes in a second", n)
		}
		reads := f.reads
		for i := range 1000 {
			f.apply("ns-000", fmt.Sprintf("pod-%03d", i), "n")
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if n := f.reads - reads; n < 1 || n > 3 {
			t.Errorf("%d lists in a second", n)
		}
	})
}

// TestFollowedWindowBeginsAnew where the log does not reach back to what was read of it.
func TestFollowedWindowBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, Window{Limit: 1})
		f.want(1000, "ADDED pod-0000000 | pod-0000000")
		object, err := f.cache.Decode("ns-5/only", []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"only","namespace":"ns-5"}}`), 2000)
		must(t, err)
		_, err = f.cache.Refill([]*watchcache.Object{object}, 2000, true)
		must(t, err)
		f.want(1, "ADDED only | only")
	})
}

// TestFollowedWindowBeginsAnewAfterItsPause: a list that took long is not read again at once
// because the place in the log is lost.
func TestFollowedWindowBeginsAnewAfterItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := followSince(t, Window{Limit: 1}, 1001)
		const cost = 200 * time.Millisecond
		time.Sleep(cost)
		f.apply("ns-500", "pod-0000500", "n1")
		f.want(1000, "ADDED pod-0000000 | pod-0000000")
		object, err := f.cache.Decode("ns-5/only", []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"only","namespace":"ns-5"}}`), 2000)
		must(t, err)
		_, err = f.cache.Refill([]*watchcache.Object{object}, 2000, true)
		must(t, err)
		f.want(1000)
		time.Sleep(pauseAfter(cost))
		f.want(1, "ADDED only | only")
		f.last = 2000
		f.apply("ns-5", "only", "n1")
		f.want(1, "MODIFIED only")
	})
}

// TestChangeThatTheListHasIsCountedOnce: one that comes just before the list is read, after the log
// was.
func TestChangeThatTheListHasIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, Window{Limit: 1})
		f.want(1000, "ADDED pod-0000000 | pod-0000000")
		late := func(node string) {
			f.admit = func() {
				f.admit = nil
				time.Sleep(followInterval / 5) // so that the log is looked at before the list is due again
				f.apply("ns-998", "late", node)
			}
		}
		late("n1")
		f.apply("ns-999", "early", "n1")
		f.want(1002, "")
		late("")
		f.apply("ns-999", "early", "")
		f.want(1000, "")
	})
}
