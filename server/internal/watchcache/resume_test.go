package watchcache

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// TestInitialStateFromBeforeTheLog: between the snapshot and the watch the log
// has moved on.
func TestInitialStateFromBeforeTheLog(t *testing.T) {
	for name, take := range map[string]bool{"read": false, "taken": true} {
		t.Run(name, func(t *testing.T) {
			c := filled(t, Options{HistoryEvents: 2}, podA, podB)
			snapshot := c.Current()
			revision := rev(11)
			for ; revision < 20; revision++ {
				c.Apply([]Change{put(t, c, podB, revision)})
			}
			c.Apply([]Change{gone(podA.Key(), revision)})
			c.Apply([]Change{put(t, c, podB, revision+1)})
			c.Apply([]Change{put(t, c, podB, revision+2)})
			w := watching(t, c, WatchOptions{Initial: &snapshot})
			if got := w.Reached(); got != 0 {
				t.Errorf("%d is reached before the initial state", got)
			}
			if take {
				w.TakeInitial()
			} else {
				var buf [2]Event
				if n, err := w.Read(buf[:]); n != 2 || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := w.Reached(); got >= revision {
				t.Errorf("%d is reached after the initial state at 10", got)
			}
			expect(t, drain(t, w), fmt.Sprintf("DELETED %s@%d", podA.Key(), revision), fmt.Sprintf("MODIFIED %s@%d", podB.Key(), revision+2))
			if got := w.Reached(); got != revision+2 {
				t.Errorf("%d is reached in the end", got)
			}
		})
	}
}

// TestInCoalescedHistory: a goroutine that serves many watchers must know which of
// them need long reads.
func TestInCoalescedHistory(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 2}, podA)
	w := watching(t, c, WatchOptions{After: 10})
	behind := func(want bool, when string) {
		t.Helper()
		if w.InCoalescedHistory() != want {
			t.Errorf("%s, behind is %v", when, !want)
		}
	}
	behind(false, "at the end of the log")
	c.Apply([]Change{put(t, c, podA, 11)})
	behind(false, "with the next event in the log")
	for revision := rev(12); revision < 15; revision++ {
		c.Apply([]Change{put(t, c, podA, revision)})
	}
	c.Apply([]Change{put(t, c, podB, 15)})
	behind(true, "with the next event evicted")
	var one [1]Event
	if n, err := w.Read(one[:]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	behind(true, "in the middle of coalesced history")
	expect(t, drain(t, w), fmt.Sprintf("ADDED %s@15", podB.Key()))
	behind(false, "when all has been read")
}

// TestSummariesReachBackAsFarAsNeeded by the watches so far, and no further.
func TestSummariesReachBackAsFarAsNeeded(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 1}, podA, podB)
	c.Apply([]Change{put(t, c, podA, 11)})
	c.Apply([]Change{gone(podA.Key(), 12)})
	c.Apply([]Change{put(t, c, podB, 13)})
	c.Apply([]Change{put(t, c, podA, 14)})
	resume := func(after, from storage.Revision, want ...string) {
		t.Helper()
		expect(t, drain(t, watching(t, c, WatchOptions{After: after})), want...)
		if c.summary.from != from || len(c.summary.changes) != int(14-from) {
			t.Errorf("the summary has %d changes after %d, want those after %d", len(c.summary.changes), c.summary.from, from)
		}
	}
	deleted, modified, added := fmt.Sprintf("DELETED %s@12", podA.Key()), fmt.Sprintf("MODIFIED %s@13", podB.Key()), fmt.Sprintf("ADDED %s@14", podA.Key())
	resume(12, 12, modified, added)
	resume(11, 11, deleted, modified, added)
	resume(12, 11, modified, added)
}

// TestSummariesAreDropped when the log has grown beyond them: each keeps a whole
// state in memory.
func TestSummariesAreDropped(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 40}, podA, podB)
	revision := rev(11)
	write := func(count int) {
		for range count {
			c.Apply([]Change{put(t, c, podA, revision)})
			revision++
		}
	}
	write(60)
	w := watching(t, c, WatchOptions{After: 11})
	if c.summary == nil {
		t.Fatal("there is no summary")
	}
	write(11)
	if c.summary != nil {
		t.Error("a summary is kept that no watch will read")
	}
	expect(t, drain(t, w)[:1], fmt.Sprintf("MODIFIED %s@70", podA.Key()))
}

// TestTombstonesAreReducedFirst: tombstones are reduced to their metadata before
// any is dropped.
func TestTombstonesAreReducedFirst(t *testing.T) {
	large := pod{Namespace: "one", Name: "a", Node: "n1", Phase: "Running"}
	value := bytes.Replace(large.Value(), []byte(`"spec":{`), []byte(`"spec":{"more":"`+strings.Repeat("x", 10_000)+`",`), 1)
	c := filled(t, Options{HistoryEvents: 1, TombstoneBytes: 100_000})
	next := rev(10)
	for range 50 {
		next += 2
		o, err := c.Decode("one/a", value, next-1)
		if err != nil {
			t.Fatal(err)
		}
		c.Apply([]Change{{Key: "one/a", Object: o, Revision: next - 1}, gone("one/a", next)})
	}
	c.Apply([]Change{put(t, c, podB, next+1)})
	stats, list := c.Stats(), c.tombstones.After(0)
	if stats.Tombstones != 50 || stats.TombstoneBytes > 100_000 {
		t.Errorf("%d tombstones of %d bytes, want 50 of at most 100000", stats.Tombstones, stats.TombstoneBytes)
	}
	first, last := list[0].Last, list[len(list)-1].Last
	if first.Size() > 1000 || last.Size() < 10_000 {
		t.Errorf("the oldest has %d bytes, the newest %d", first.Size(), last.Size())
	}
	if got := c.res.Fields[fieldNode]; first.Attributes.Fields[fieldNode] != "n1" {
		t.Errorf("%s is %q", got.Name, first.Attributes.Fields[fieldNode])
	}
}

// TestFinalFieldsRuleOutEarlierMatches: a bound pod was pending before, and has
// never been on another node.
func TestFinalFieldsRuleOutEarlierMatches(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 1}, podA, podB, podC)
	running := podA
	running.Phase = "Running"
	c.Apply([]Change{put(t, c, running, 11)})
	c.Apply([]Change{gone(podC.Key(), 12)})
	c.Apply([]Change{put(t, c, podB, 13)})
	for field, want := range map[string][]string{
		"spec.nodeName=n1":                       {"MODIFIED one/a@11", "DELETED two/c@12"},
		"spec.nodeName=n2":                       {"MODIFIED one/b@13"},
		"spec.nodeName=n3":                       nil,
		"spec.nodeName=":                         {"DELETED one/a@10", "DELETED one/b@10"},
		"spec.nodeName=,status.phase=Pending":    {"DELETED one/a@10", "DELETED one/b@10"},
		"spec.nodeName!=n1":                      {"DELETED one/a@10", "MODIFIED one/b@13"},
		"status.phase=Pending":                   {"DELETED one/a@10", "DELETED one/b@10"},
		"status.phase=Pending,spec.nodeName=n1":  {"DELETED one/a@10"},
		"status.phase=Pending,spec.nodeName=n2":  {"DELETED one/b@10"},
		"status.phase=Running,spec.nodeName!=n3": {"MODIFIED one/a@11", "DELETED two/c@12", "MODIFIED one/b@13"},
	} {
		t.Run(field, func(t *testing.T) {
			expect(t, drain(t, watching(t, c, WatchOptions{After: 10, Selection: selecting(t, "", "", "", field)})), want...)
		})
	}
}
