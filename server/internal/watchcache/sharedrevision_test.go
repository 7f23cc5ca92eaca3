package watchcache

import (
	"fmt"
	"strings"
	"testing"
)

// deletedTogether is a cache in which four pods were deleted at revision 20, as
// etcd deletes the keys of one expired lease.
func deletedTogether(t *testing.T, opts Options) *Cache {
	t.Helper()
	d := pod{Namespace: "two", Name: "d"}
	c := filled(t, opts, podA, podB, podC, d)
	if n := c.Apply([]Change{put(t, c, podB, 15), gone(podA.Key(), 20), gone(podB.Key(), 20), gone(podC.Key(), 20), gone(d.Key(), 20)}); n != 5 {
		t.Fatalf("%d of 5 changes were applied", n)
	}
	return c
}

// changedTogether is a cache in which a transaction of another program has changed,
// created and deleted pods at revision 20.
func changedTogether(t *testing.T, opts Options) *Cache {
	t.Helper()
	d := pod{Namespace: "two", Name: "d", Node: "n1"}
	moved := podA
	moved.Node = "n2"
	e := pod{Namespace: "one", Name: "e"}
	c := filled(t, opts, podA, podB, podC, e)
	if n := c.Apply([]Change{put(t, c, podB, 15), put(t, c, d, 20), put(t, c, podB, 20), gone(podC.Key(), 20), put(t, c, moved, 20), gone(e.Key(), 20)}); n != 6 {
		t.Fatalf("%d of 6 changes were applied", n)
	}
	return c
}

// TestWatchesResumeInsideARevision interrupts a client after each event,
// and has it resume from the revision that the event carried, and from what was
// reached: nothing is ever missing.
func TestWatchesResumeInsideARevision(t *testing.T) {
	for name, together := range map[string]func(*testing.T, Options) *Cache{"deleted": deletedTogether, "changed": changedTogether} {
		for _, opts := range []Options{{}, {HistoryEvents: 1}} {
			t.Run(fmt.Sprint(name, opts.HistoryEvents), func(t *testing.T) { resumeInside(t, together(t, opts)) })
		}
	}
}

func resumeInside(t *testing.T, c *Cache) {
	c.Advance(30)
	for _, selection := range []*Selection{nil, selecting(t, "one", "", "", ""), selecting(t, "", "", "", "spec.nodeName=n1")} {
		w := watching(t, c, WatchOptions{After: 10, Selection: selection})
		all := drain(t, watching(t, c, WatchOptions{After: 10, Selection: selection}))
		buf := make([]Event, 1)
		for read := range len(all) {
			if n, err := w.Read(buf); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			e := buf[0]
			if carried := fmt.Sprintf(`"resourceVersion":"%d"`, e.Revision); !strings.Contains(string(e.Object.JSON()), carried) || e.Object.Revision != e.Revision {
				t.Errorf("the event at %d carries %s", e.Revision, e.Object.JSON())
			}
			missing := eventStrings(all[read+1:])
			if last := len(missing) == 0; (w.Reached() >= 20) != last {
				t.Errorf("after %d of %d events %d is reached", read+1, len(all), w.Reached())
			}
			for _, from := range []Event{e, {Revision: w.Reached()}} {
				again := eventStrings(drain(t, watching(t, c, WatchOptions{After: from.Revision, Selection: selection})))
				if !strings.HasSuffix(fmt.Sprint(again), strings.TrimPrefix(fmt.Sprint(missing), "[")) {
					t.Errorf("resumed from %d after %d events: %q, want at least %q", from.Revision, read+1, again, missing)
				}
			}
		}
	}
}

func TestExactReadsAroundAWholeRevision(t *testing.T) {
	c := deletedTogether(t, Options{})
	for revision, want := range map[int]int{10: 4, 19: 4, 20: 0} {
		if s, err := c.Exact(t.Context(), rev(revision)); err != nil || s.Len() != want {
			t.Errorf("at %d: %d objects, %v; want %d", revision, s.Len(), err, want)
		}
	}
}

// TestPartOfARevisionIsNotServed evicts the first of the events of a revision.
func TestPartOfARevisionIsNotServed(t *testing.T) {
	c := deletedTogether(t, Options{HistoryEvents: 3, ExactHistory: true})
	if _, err := c.Watch(WatchOptions{After: 19}); !isExpired(err, 19, 20) {
		t.Errorf("watch from before the revision: %v", err)
	}
	if _, err := c.Exact(t.Context(), 19); !isExpired(err, 19, 20) {
		t.Errorf("read from before the revision: %v", err)
	}
	expect(t, drain(t, watching(t, c, WatchOptions{After: 20})))
}

// TestRevisionsOfEventsNeverDecrease: a client that drops what is older than what it has
// would else keep what a transaction deletes behind a put.
func TestRevisionsOfEventsNeverDecrease(t *testing.T) {
	for name, together := range map[string]func(*testing.T, Options) *Cache{"deleted": deletedTogether, "changed": changedTogether} {
		for _, opts := range []Options{{}, {HistoryEvents: 1}} {
			c := together(t, opts)
			for _, selection := range []*Selection{nil, selecting(t, "one", "", "", ""), selecting(t, "", "", "", "spec.nodeName=n1")} {
				last, kinds := Event{}, ""
				for _, e := range drain(t, watching(t, c, WatchOptions{After: 10, Selection: selection})) {
					kinds += fmt.Sprintf(" %v@%d", e.Type, e.Revision)
					if e.Revision < last.Revision || e.Object.Revision < last.Revision {
						t.Errorf("%s, history %d, %v:%s: the last of these goes back", name, opts.HistoryEvents, selection, kinds)
					}
					last = e
				}
			}
		}
	}
}

// TestResumesInsideARevisionDoNotGoBack: a client that may have a part of a revision gets it again,
// and what coalesced history begins with, at versions that are not before its own.
func TestResumesInsideARevisionDoNotGoBack(t *testing.T) {
	web := map[string]string{"app": "web"}
	for _, opts := range []Options{{}, {HistoryEvents: 1}} {
		c := filled(t, opts, podA, podB, podC)
		left := pod{Namespace: "one", Name: "left", Labels: web}
		c.Apply([]Change{put(t, c, left, 15), put(t, c, podB, 20), gone(podC.Key(), 20), put(t, c, podA, 20)})
		left.Labels = nil
		c.Apply([]Change{put(t, c, left, 30)})
		for name, selection := range map[string]*Selection{"all": nil, "left": selecting(t, "", "", "app=web", "")} {
			for _, e := range drain(t, watching(t, c, WatchOptions{After: 20, Selection: selection})) {
				if carried := fmt.Sprintf(`"resourceVersion":"%d"`, e.Revision); e.Revision < 20 || e.Object.Revision != e.Revision || !strings.Contains(string(e.Object.JSON()), carried) {
					t.Errorf("history %d, %s: %s %s at %d carries %s", opts.HistoryEvents, name, e.Type, e.Object.Key, e.Revision, e.Object.JSON())
				}
			}
		}
	}
}

// TestNoBookmarkInsideARevision: a bookmark with the revision before would tell a client that has
// an event of this one that the server has gone back in time.
func TestNoBookmarkInsideARevision(t *testing.T) {
	c := filled(t, Options{}, podA)
	w := watching(t, c, WatchOptions{After: 10})
	if at := w.Bookmark(); at != 10 {
		t.Errorf("before: %d", at)
	}
	// A reader may be in the midst of Apply: the log has a part of the revision.
	c.mu.Lock()
	tree := c.state.Load().tree.Batch()
	first := put(t, c, podB, 20)
	c.append(&first, nil, 19, 0, tree)
	c.mu.Unlock()
	buf := make([]Event, 1)
	if n, err := w.Read(buf); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	expect(t, buf, "ADDED one/b@20")
	if at := w.Bookmark(); at != 0 {
		t.Errorf("with a part of revision 20, a bookmark names %d", at)
	}
	c.mu.Lock()
	c.state.Store(&cacheState{tree: tree.Tree(), revision: 20})
	c.mu.Unlock()
	if at := w.Bookmark(); at != 20 {
		t.Errorf("with the whole of it, a bookmark names %d", at)
	}
}

// TestCoalescedHistoryAfterAPartOfARevision: an object that was created in the revision of which a
// client may have a part may be known to it, and is deleted for it.
func TestCoalescedHistoryAfterAPartOfARevision(t *testing.T) {
	web := map[string]string{"app": "web"}
	deleted, left, never := pod{Namespace: "one", Name: "deleted", Labels: web}, pod{Namespace: "one", Name: "left", Labels: web}, pod{Namespace: "one", Name: "never"}
	for name, read := range map[string]int{"slow": 1, "resumed": 0} {
		t.Run(name, func(t *testing.T) {
			c := filled(t, Options{HistoryEvents: 4}, podC)
			selection := selecting(t, "one", "", "app=web", "")
			w := watching(t, c, WatchOptions{After: 10, Selection: selection})
			c.Apply([]Change{put(t, c, deleted, 20), put(t, c, left, 20), put(t, c, never, 20), put(t, c, podC, 20)})
			if n, err := w.Read(make([]Event, 2)); n != 2 || err != nil {
				t.Fatal(n, err)
			}
			out := left
			out.Labels = nil
			c.Apply([]Change{gone(deleted.Key(), 30), put(t, c, out, 31)})
			for revision := 40; revision < 50; revision++ {
				c.Apply([]Change{put(t, c, podC, rev(revision))})
			}
			if read == 0 {
				w = watching(t, c, WatchOptions{After: 20, Selection: selection})
			}
			expect(t, drain(t, w), "DELETED one/left@20", "DELETED one/deleted@30")
		})
	}
}
