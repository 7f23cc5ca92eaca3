package watchcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

func TestSelectorTransitions(t *testing.T) {
	web, db := map[string]string{"app": "web"}, map[string]string{"app": "db"}
	with := func(labels map[string]string) pod { return pod{Namespace: "one", Name: "x", Labels: labels} }
	c := filled(t, Options{})
	w := watching(t, c, WatchOptions{After: 10, Selection: selecting(t, "", "", "app=web", "")})
	c.Apply([]Change{
		put(t, c, with(db), 11),  // not selected
		put(t, c, with(web), 12), // enters
		put(t, c, with(web), 13), // changes
		put(t, c, with(db), 14),  // leaves
		put(t, c, with(db), 15),  // changes while not selected
		put(t, c, with(web), 16), // enters again
		gone("one/x", 17),
		put(t, c, with(db), 18),
		gone("one/x", 19), // deleted while not selected
	})
	events := drain(t, w)
	expect(t, events, "ADDED one/x@12", "MODIFIED one/x@13", "DELETED one/x@14", "ADDED one/x@16", "DELETED one/x@17")
	left := events[2].Object
	if left.Revision != 14 || !strings.Contains(string(left.JSON()), `"resourceVersion":"14"`) || !strings.Contains(string(left.JSON()), `"app":"web"`) {
		t.Errorf("leaving shows %s at %d, want the previous content with revision 14", left.JSON(), left.Revision)
	}
	if removed := events[4].Object; !strings.Contains(string(removed.JSON()), `"resourceVersion":"17"`) {
		t.Errorf("deletion shows %s, want the last content with revision 17", removed.JSON())
	}
}

func TestLastStateIsSharedByWatchers(t *testing.T) {
	c := filled(t, Options{}, podA)
	first := watching(t, c, WatchOptions{After: 10})
	second := watching(t, c, WatchOptions{After: 10, Selection: selecting(t, "one", "", "", "")})
	c.Apply([]Change{gone(podA.Key(), 11)})
	if a, b := drain(t, first), drain(t, second); a[0].Object != b[0].Object {
		t.Error("two watchers got two copies of one deleted object")
	}
}

func TestWatchContinuesASnapshotExactly(t *testing.T) {
	c := filled(t, Options{}, podA, podC)
	c.Apply([]Change{put(t, c, podB, 11)})
	snapshot := c.Current()
	c.Apply([]Change{put(t, c, podA, 12), gone(podB.Key(), 13)})

	w := watching(t, c, WatchOptions{Initial: &snapshot})
	if !w.Initial() || w.Reached() != 0 {
		t.Error("before the initial events have been read no revision is reached")
	}
	buf := make([]Event, 2)
	if n, err := w.Read(buf); n != 2 || err != nil || !w.Initial() {
		t.Fatalf("first Read: %d, %v, initial %v", n, err, w.Initial())
	}
	expect(t, buf, "ADDED one/a@1", "ADDED one/b@11")
	expect(t, drain(t, w), "ADDED two/c@1", "MODIFIED one/a@12", "DELETED one/b@13")
	if w.Initial() || w.Reached() != 13 {
		t.Errorf("initial %v, reached %d", w.Initial(), w.Reached())
	}

	plain := watching(t, c, WatchOptions{After: snapshot.Revision()})
	expect(t, drain(t, plain), "MODIFIED one/a@12", "DELETED one/b@13")

	narrow := watching(t, c, WatchOptions{Initial: &snapshot, Selection: selecting(t, "one", "", "", "")})
	expect(t, drain(t, narrow), "ADDED one/a@1", "ADDED one/b@11", "MODIFIED one/a@12", "DELETED one/b@13")
}

func TestWatchFromTheFutureDeliversNothingUntilThen(t *testing.T) {
	c := filled(t, Options{}, podA)
	w := watching(t, c, WatchOptions{After: 12})
	c.Apply([]Change{put(t, c, podA, 11), put(t, c, podA, 12)})
	expect(t, drain(t, w))
	if w.Reached() != 12 {
		t.Errorf("reached %d, want 12", w.Reached())
	}
	c.Apply([]Change{put(t, c, podA, 13)})
	expect(t, drain(t, w), "MODIFIED one/a@13")
}

// TestWatchFromTheFutureAtTheFirstChange: a client that has created an object is not told of the
// creation, also if that is the first change in the log, or the oldest that is left there.
func TestWatchFromTheFutureAtTheFirstChange(t *testing.T) {
	first := filled(t, Options{})
	w := watching(t, first, WatchOptions{After: 11})
	first.Apply([]Change{put(t, first, podA, 11)})
	expect(t, drain(t, w))

	short := filled(t, Options{HistoryEvents: 1}, podB)
	short.Apply([]Change{put(t, short, podB, 11)})
	w = watching(t, short, WatchOptions{After: 12})
	short.Apply([]Change{put(t, short, podA, 12)})
	expect(t, drain(t, w))
	short.Apply([]Change{put(t, short, podA, 13)})
	expect(t, drain(t, w), "MODIFIED one/a@13")
}

// TestWatchFromTheFutureGetsTheWholeOfItsRevision: a client may have one of several changes of it.
func TestWatchFromTheFutureGetsTheWholeOfItsRevision(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 1, ExactHistory: true})
	w := watching(t, c, WatchOptions{After: 11, Selection: selecting(t, "two", "", "", "")})
	c.Apply([]Change{put(t, c, podA, 11), put(t, c, podC, 11)}) // the first is evicted
	expect(t, drain(t, w), "ADDED two/c@11")
}

func TestWatchFromEvictedHistoryExpires(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 3, ExactHistory: true}, podA)
	if _, err := c.Watch(WatchOptions{After: 9}); !isExpired(err, 9, 10) {
		t.Errorf("before the fill: %v", err)
	}
	slow := watching(t, c, WatchOptions{After: 10})
	idle := watching(t, c, WatchOptions{After: 10, Selection: selecting(t, "two", "", "", "")})
	for revision := range 5 {
		c.Apply([]Change{put(t, c, podA, 11+rev(revision))})
	}
	// 11 and 12 are evicted: a client at 12 can resume.
	if _, err := c.Watch(WatchOptions{After: 11}); !isExpired(err, 11, 12) {
		t.Errorf("evicted: %v", err)
	}
	expect(t, drain(t, watching(t, c, WatchOptions{After: 12})), "MODIFIED one/a@13", "MODIFIED one/a@14", "MODIFIED one/a@15")
	if n, err := slow.Read(make([]Event, 10)); n != 0 || !isExpired(err, 10, 12) {
		t.Errorf("slow watcher: %d, %v", n, err)
	}
	expect(t, drain(t, idle)) // has missed no event of its selection
	if got := c.Stats(); got.HistoryLen != 3 || got.Evicted != 2 || got.Expired != 3 {
		t.Errorf("stats %+v", got)
	}
}

func TestHistoryIsBoundedByBytes(t *testing.T) {
	c := filled(t, Options{HistoryBytes: 4096})
	for i := range 1000 {
		c.Apply([]Change{put(t, c, pod{Namespace: "one", Name: fmt.Sprint("p", i%7)}, 11+rev(i))})
		if held := c.Stats().HistoryBytes; held > 4096 {
			t.Fatalf("history holds %d bytes", held)
		}
	}
	if n := c.Stats().HistoryLen; n < 2 {
		t.Errorf("history of %d", n)
	}
}

// TestReadingAllocatesNothing: the work for every event and watcher must not burden
// the garbage collector.
func TestReadingAllocatesNothing(t *testing.T) {
	const runs = 100
	c := filled(t, Options{}, podA)
	w := watching(t, c, WatchOptions{After: 10, Selection: selecting(t, "one", "", "", "spec.nodeName=n1")})
	drain(t, w)
	for i := range runs + 1 { // one to warm up
		c.Apply([]Change{put(t, c, podA, 11+rev(i))})
	}
	buf := make([]Event, 1)
	if n := testing.AllocsPerRun(runs, func() {
		if n, err := w.Read(buf); n != 1 || err != nil {
			t.Error(n, err)
		}
		w.Reached()
	}); n != 0 {
		t.Errorf("%v allocations for each event read", n)
	}
}

// TestReachedIsNeverAhead: what is reached grows with the feed's progress,
// but not past an event that has not been read.
func TestReachedIsNeverAhead(t *testing.T) {
	c := filled(t, Options{}, podA)
	w := watching(t, c, WatchOptions{After: 10, Selection: selecting(t, "one", "", "", "status.phase=Pending")})
	steps := []struct {
		change *Change
		read   bool
		want   int
	}{
		{want: 10},
		{change: new(put(t, c, podC, 11)), want: 11}, // not its namespace
		{change: new(put(t, c, podA, 15)), want: 14},
		{want: 14},
		{read: true, want: 15},
		{change: new(put(t, c, podB, 16)), want: 16}, // its namespace, not its phase
		{change: new(gone(podA.Key(), 20)), want: 19},
		{read: true, want: 20},
	}
	for i, step := range steps {
		if step.change != nil {
			c.Apply([]Change{*step.change})
			c.Advance(step.change.Revision)
		}
		if step.read {
			drain(t, w)
		}
		if got := w.Reached(); int(got) != step.want {
			t.Errorf("step %d: reached %d, want %d", i, got, step.want)
		}
	}
	c.Advance(100)
	if w.Reached() != 100 {
		t.Errorf("an idle watcher reached %d, want the feed's 100", w.Reached())
	}
}

func TestNotOlderThan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filled(t, Options{FreshnessWait: 5 * time.Second}, podA)
		begun := time.Now()
		var late *TooLargeError
		if _, err := c.NotOlderThan(t.Context(), 11); !errors.As(err, &late) || late.Requested != 11 || late.Current != 10 || !errors.Is(err, ErrTooLarge) {
			t.Errorf("error is %v", err)
		}
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("waited %v, want what the option says", waited)
		}

		var order []int
		for _, revision := range []int{14, 12, 13} {
			go func() {
				s, err := c.NotOlderThan(t.Context(), rev(revision))
				if err != nil || int(s.Revision()) < revision {
					t.Errorf("%d: %d, %v", revision, s.Revision(), err)
				}
				order = append(order, revision)
			}()
		}
		synctest.Wait()
		for _, revision := range []int{12, 13, 14} {
			c.Advance(rev(revision))
			synctest.Wait()
		}
		if fmt.Sprint(order) != "[12 13 14]" {
			t.Errorf("released in the order %v", order)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.NotOlderThan(ctx, 99); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want the context's", err)
		}
		if n := len(c.progress.Load().waiters); n != 0 {
			t.Errorf("%d waiters are left behind", n)
		}
	})
}

func TestBeforeTheFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(podResource(), Options{})
		if _, err := c.Watch(WatchOptions{}); !errors.Is(err, ErrNotReady) {
			t.Errorf("watch: %v", err)
		}
		if _, err := c.NotOlderThan(t.Context(), 0); !errors.Is(err, ErrNotReady) {
			t.Errorf("read: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.WaitReady(ctx); !errors.Is(err, ErrNotReady) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		go func() {
			if _, err := c.Fill(nil, 7); err != nil {
				t.Error(err)
			}
		}()
		if s, err := c.NotOlderThan(t.Context(), 7); err != nil || s.Revision() != 7 {
			t.Errorf("read after the fill: %d, %v", s.Revision(), err)
		}
	})
}

func TestExactReads(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 600})
	want := map[int]string{}
	names := map[string]bool{}
	for i := range 1500 {
		revision := 11 + 2*i // the odd ones belong to other resources
		p := pod{Namespace: "one", Name: fmt.Sprintf("p%02d", i*7%40)}
		if names[p.Name] && i%3 == 0 {
			c.Apply([]Change{gone(p.Key(), rev(revision))})
			delete(names, p.Name)
		} else {
			c.Apply([]Change{put(t, c, p, rev(revision))})
			names[p.Name] = true
		}
		want[revision] = content(c.Current())
	}
	c.Advance(5000)
	for revision, state := range want {
		got, err := c.Exact(t.Context(), rev(revision))
		if revision < 11+2*(1500-600)-2 {
			if !errors.Is(err, ErrExpired) {
				t.Fatalf("%d: %v, want expired", revision, err)
			}
			continue
		}
		if err != nil || content(got) != state || int(got.Revision()) != revision {
			t.Fatalf("%d: %v at %d\n%s, want\n%s", revision, err, got.Revision(), content(got), state)
		}
		between, err := c.Exact(t.Context(), rev(revision+1))
		if err != nil || content(between) != state || int(between.Revision()) != revision+1 {
			t.Fatalf("between: %v at %d", err, between.Revision())
		}
	}
	last, err := c.Exact(t.Context(), 5000)
	if err != nil || content(last) != content(c.Current()) || last.Revision() != 5000 {
		t.Errorf("now: %v at %d", err, last.Revision())
	}
}

// content writes a snapshot down.
func content(s Snapshot) string {
	var b strings.Builder
	for o := range s.Range("", "") {
		fmt.Fprintf(&b, "%s@%d ", o.Key, o.Revision)
	}
	return b.String()
}

func TestApplyIsIdempotent(t *testing.T) {
	c := filled(t, Options{}, podA)
	w := watching(t, c, WatchOptions{After: 10})
	changes := []Change{put(t, c, podB, 11), put(t, c, podC, 12)}
	if n := c.Apply(changes) + c.Apply(changes); n != 2 {
		t.Errorf("%d changes entered, want 2", n)
	}
	if n := c.Apply([]Change{put(t, c, podA, 9), gone("one/missing", 13)}); n != 0 {
		t.Errorf("%d changes entered, want none", n)
	}
	expect(t, drain(t, w), "ADDED one/b@11", "ADDED two/c@12")
}

func TestCloseEndsWatchers(t *testing.T) {
	c := filled(t, Options{}, podA)
	w := watching(t, c, WatchOptions{After: 10})
	own := watching(t, c, WatchOptions{After: 10})
	own.Close()
	own.Close()
	if _, err := own.Read(make([]Event, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("closed watcher: %v", err)
	}
	drain(t, w)
	<-w.Ready() // of the first Read
	c.Close()
	<-w.Ready()
	if _, err := w.Read(make([]Event, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("watcher of a closed cache: %v", err)
	}
	if _, err := c.Watch(WatchOptions{After: 10}); !errors.Is(err, ErrClosed) {
		t.Errorf("new watcher of a closed cache: %v", err)
	}
}

func isExpired(err error, requested, oldest int) bool {
	var expired *ExpiredError
	return errors.As(err, &expired) && errors.Is(err, ErrExpired) && int(expired.Requested) == requested && int(expired.Oldest) == oldest
}

func TestDecodeOption(t *testing.T) {
	c := New(podResource(), Options{Decode: func(key string, value []byte, revision storage.Revision) (*Object, error) {
		return NewObject(key, revision, resource.Attributes{Name: string(value)}, fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%d"}}`, revision))
	}})
	if o, err := c.Decode("k", []byte("mine"), 3); err != nil || o.Attributes.Name != "mine" {
		t.Errorf("decoded %+v, %v", o, err)
	}
}

// TestWatchersOpenAndCloseDuringWrites is for the race detector, and for what must be
// left when all are gone: nothing.
func TestWatchersOpenAndCloseDuringWrites(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 50, ExactHistory: true})
	var group sync.WaitGroup
	stop := make(chan struct{})
	for i := range 6 {
		group.Go(func() {
			s := []*Selection{nil, selecting(t, "one", "", "", ""), selecting(t, "", "", "", "spec.nodeName=n1"), selecting(t, "", "", "app=web", "")}
			buf := make([]Event, 7)
			for round := i; ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				snapshot := c.Current()
				w, err := c.Watch(WatchOptions{Initial: &snapshot, Selection: s[round%len(s)]})
				if errors.Is(err, ErrExpired) {
					continue // 50 events went by in between
				}
				if err != nil {
					t.Error(err)
					return
				}
				last := snapshot.Revision()
				for range 20 {
					initial := w.Initial()
					n, err := w.Read(buf)
					if errors.Is(err, ErrExpired) {
						break
					}
					for _, e := range buf[:n] {
						if !initial && e.Revision <= last {
							t.Errorf("%d after %d", e.Revision, last)
						}
						if !initial {
							last = e.Revision
						}
					}
					if reached := w.Reached(); reached != 0 && reached < last {
						t.Errorf("reached %d after an event at %d", reached, last)
					}
				}
				w.Close()
			}
		})
	}
	for i := range 3000 {
		p := pod{Namespace: "one", Name: fmt.Sprint("p", i%30), Node: fmt.Sprint("n", i%3)}
		if i%4 == 0 {
			p.Labels = map[string]string{"app": "web"}
		}
		c.Apply([]Change{put(t, c, p, rev(11+i))})
		c.Advance(rev(11 + i))
	}
	close(stop)
	group.Wait()
	if got := c.Stats(); got.Watchers != 0 || got.Buckets != 0 || len(c.all.sleepers) != 0 {
		t.Errorf("left behind: %+v, %d sleepers", got, len(c.all.sleepers))
	}
}
