package watchcache

import (
	"errors"
	"testing"
)

// TestClientOfAnotherServerAfterARefill: what was made and deleted while the cache had lost its
// position is known to clients of other servers only.
func TestClientOfAnotherServerAfterARefill(t *testing.T) {
	a, b := pod{Namespace: "one", Name: "a"}, pod{Namespace: "one", Name: "b"}
	c := filled(t, Options{}, a)
	behind := watching(t, c, WatchOptions{After: 10})
	ahead := watching(t, c, WatchOptions{After: 15}) // another server was at 15, when there was a pod that is gone at 20
	snapshot := c.Current()
	initial := watching(t, c, WatchOptions{Initial: &snapshot})
	expect(t, drain(t, behind))
	expect(t, drain(t, ahead))
	expect(t, drain(t, initial), "ADDED one/a@1")

	if _, err := c.Fill([]*Object{objectOf(t, c, a, 1), objectOf(t, c, b, 18)}, 20); err != nil {
		t.Fatal(err)
	}
	if got := ahead.Reached(); got != 15 {
		t.Errorf("a bookmark would take the client ahead from 15 to %d", got)
	}
	if _, err := ahead.Read(make([]Event, 1)); !errors.Is(err, ErrExpired) {
		t.Errorf("the watch from 15 on reads on: %v", err)
	}
	expect(t, drain(t, behind), "ADDED one/b@18")
	expect(t, drain(t, initial), "ADDED one/b@18")
	if got := behind.Reached(); got != 20 {
		t.Errorf("reached %d", got)
	}
	if _, err := c.Watch(WatchOptions{After: 15}); !errors.Is(err, ErrExpired) {
		t.Errorf("a later watch from 15 on: %v", err)
	}
	expect(t, drain(t, watching(t, c, WatchOptions{After: 10})), "ADDED one/b@18")
	expect(t, drain(t, watching(t, c, WatchOptions{After: 20})))
}

// TestSleepingWatcherInAGap: a refill without differences wakes it, too.
func TestSleepingWatcherInAGap(t *testing.T) {
	a := pod{Namespace: "one", Name: "a"}
	c := filled(t, Options{}, a)
	w := watching(t, c, WatchOptions{After: 15})
	expect(t, drain(t, w))
	<-w.Ready()
	if _, err := c.Fill([]*Object{objectOf(t, c, a, 1)}, 20); err != nil {
		t.Fatal(err)
	}
	<-w.Ready()
	if _, err := w.Read(make([]Event, 1)); !errors.Is(err, ErrExpired) {
		t.Errorf("the watch reads on: %v", err)
	}
}

// TestManyGaps: the list is bounded, and what it forgets is in gaps all the same.
func TestManyGaps(t *testing.T) {
	c := filled(t, Options{})
	for i := range 3 * maxGaps {
		if _, err := c.Fill(nil, rev(20+10*i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(*c.gaps.Load()); n != maxGaps {
		t.Errorf("%d gaps are kept", n)
	}
	for _, revision := range []int{15, 25, 20 + 10*3*maxGaps - 15} {
		if _, err := c.Watch(WatchOptions{After: rev(revision)}); !errors.Is(err, ErrExpired) {
			t.Errorf("a watch from %d on: %v", revision, err)
		}
	}
}

// TestEndAtGaps: a watcher that feeds another cache ends before it would go on with less than
// every change, whether it sleeps or has events to read, and others go on.
func TestEndAtGaps(t *testing.T) {
	a, b := pod{Namespace: "one", Name: "a"}, pod{Namespace: "one", Name: "b"}
	ended := func(t *testing.T, w *Watcher, reached int) {
		t.Helper()
		if got := w.Reached(); got != rev(reached) {
			t.Errorf("a bookmark would take it to %d, want %d", got, reached)
		}
		if n, err := w.Read(make([]Event, 4)); n != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("it reads on: %d, %v", n, err)
		}
	}
	t.Run("refill", func(t *testing.T) {
		c := filled(t, Options{}, a)
		exact, other := watching(t, c, WatchOptions{After: 10, EndAtGaps: true}), watching(t, c, WatchOptions{After: 10})
		expect(t, drain(t, exact))
		if c.HasGapAfter(10) {
			t.Error("there is no gap yet")
		}
		if _, err := c.Fill([]*Object{objectOf(t, c, a, 1), objectOf(t, c, b, 18)}, 20); err != nil {
			t.Fatal(err)
		}
		<-exact.Ready()
		ended(t, exact, 10)
		expect(t, drain(t, other), "ADDED one/b@18")
		if !c.HasGapAfter(10) || c.HasGapAfter(20) {
			t.Error("the next watch from 10 on is not told, or that from 20 on is")
		}
		expect(t, drain(t, watching(t, c, WatchOptions{After: 10, EndAtGaps: true})), "ADDED one/b@18")
	})
	t.Run("announced", func(t *testing.T) {
		c := filled(t, Options{}, a)
		exact := watching(t, c, WatchOptions{After: 10, EndAtGaps: true})
		c.BeginGap()
		c.Apply([]Change{{Key: objectOf(t, c, b, 18).Key, Object: objectOf(t, c, b, 18), Revision: 18}})
		ended(t, exact, 10)
	})
	t.Run("slow", func(t *testing.T) {
		c := filled(t, Options{HistoryEvents: 1}, a)
		exact, other := watching(t, c, WatchOptions{After: 10, EndAtGaps: true}), watching(t, c, WatchOptions{After: 10})
		for revision := 11; revision < 40; revision++ {
			o := objectOf(t, c, b, rev(revision))
			c.Apply([]Change{{Key: o.Key, Object: o, Revision: o.Revision}})
		}
		ended(t, exact, 10)
		if got := drain(t, other); len(got) == 0 {
			t.Error("the other one does not go on with coalesced history")
		}
	})
}

// TestGapBeginsDuringARead: what comes from behind a gap is not read, however far the reading
// of the log had got when the gap began.
func TestGapBeginsDuringARead(t *testing.T) {
	a, b := pod{Namespace: "one", Name: "a"}, pod{Namespace: "one", Name: "b", Labels: map[string]string{"app": "web"}}
	announced := func(c *Cache) {
		c.BeginGap()
		c.Apply([]Change{put(t, c, b, 18)})
	}
	refilled := func(c *Cache) {
		if _, err := c.Fill([]*Object{objectOf(t, c, a, 1), objectOf(t, c, b, 20)}, 20); err != nil {
			t.Fatal(err)
		}
	}
	selected, others := selecting(t, "", "", "app=web", ""), selecting(t, "", "", "app!=web", "")
	for name, test := range map[string]struct {
		opts  WatchOptions
		begin func(*Cache)
		want  error
	}{
		"announced":              {WatchOptions{After: 10, EndAtGaps: true}, announced, ErrClosed},
		"announced, selected":    {WatchOptions{After: 10, EndAtGaps: true, Selection: selected}, announced, ErrClosed},
		"announced, of others":   {WatchOptions{After: 10, EndAtGaps: true, Selection: others}, announced, ErrClosed},
		"refilled":               {WatchOptions{After: 10, EndAtGaps: true}, refilled, ErrClosed},
		"refilled, from in it":   {WatchOptions{After: 15}, refilled, ErrExpired},
		"refilled, of others":    {WatchOptions{After: 15, Selection: others}, refilled, ErrExpired},
		"refilled, room for one": {WatchOptions{After: 10, EndAtGaps: true}, refilled, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			c := filled(t, Options{}, a)
			reading, asked := watching(t, c, test.opts), watching(t, c, test.opts)
			for _, w := range []*Watcher{reading, asked} {
				expect(t, drain(t, w))
			}
			through := c.Reached()
			test.begin(c)
			buf := make([]Event, 4)
			if name == "refilled, room for one" {
				buf = buf[:1]
			}
			// As in a Read and a Reached that looked for gaps before there was one.
			if n, err := reading.readLog(buf); n != 0 || !errors.Is(err, test.want) {
				t.Errorf("it reads on: %d, %v", n, err)
			}
			if got, want := asked.skipUnselected(through), test.opts.After; got != want {
				t.Errorf("a bookmark would take it to %d, want %d", got, want)
			}
			for _, w := range []*Watcher{reading, asked} {
				if got, want := w.Reached(), test.opts.After; got != want {
					t.Errorf("a later bookmark would take it to %d, want %d", got, want)
				}
				if n, err := w.Read(buf); n != 0 || !errors.Is(err, test.want) {
					t.Errorf("the next Read goes on: %d, %v", n, err)
				}
			}
		})
	}
}

// TestSlowWatcherInAGap: coalesced history does not lead out of a gap.
func TestSlowWatcherInAGap(t *testing.T) {
	a, b := pod{Namespace: "one", Name: "a"}, pod{Namespace: "one", Name: "b"}
	c := filled(t, Options{HistoryEvents: 1}, a)
	w := watching(t, c, WatchOptions{After: 15})
	if _, err := c.Fill([]*Object{objectOf(t, c, a, 1), objectOf(t, c, b, 18)}, 20); err != nil {
		t.Fatal(err)
	}
	for revision := 21; revision < 40; revision++ {
		c.Apply([]Change{put(t, c, b, rev(revision))})
	}
	if n, err := w.readLog(make([]Event, 4)); n != 0 || !errors.Is(err, ErrExpired) { // as in a Read that has looked for gaps before
		t.Errorf("it reads on: %d, %v", n, err)
	}
	if n, err := w.Read(make([]Event, 4)); n != 0 || !errors.Is(err, ErrExpired) {
		t.Errorf("the next Read goes on: %d, %v", n, err)
	}
}
