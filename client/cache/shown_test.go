package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestShown: however late the version comes that everything was processed up to, nothing that is shown is newer than what
// Shown says.
func TestShown(t *testing.T) {
	c := newConsumer()
	f := c.fifo
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when, processed, shown string) {
		t.Helper()
		if got, newest := f.Processed(), f.Shown(); got != processed || newest != shown {
			t.Errorf("%s: processed up to %q, shown up to %q, want %q and %q", when, got, newest, processed, shown)
		}
	}
	pods := func(pods ...*corev1.Pod) []*corev1.Pod { return pods }
	pop := func(want string) { // while others are queued
		t.Helper()
		if key, deltas, _ := c.pop(t); key+": "+deltas != want {
			t.Errorf("popped %s: %s, want %s", key, deltas, want)
		}
	}
	expect("nothing was queued", "", "")
	must(f.Replace(pods(pod("a", 1, 3), pod("b", 2, 5)), "10"))
	expect("nothing was popped", "", "")
	pop("a: Replaced 3")
	pop("b: Replaced 5")
	expect("a list", "10", "5")

	must(f.Update(pod("a", 1, 11)))
	f.Reached("11")
	must(f.Update(pod("b", 2, 12)))
	f.Reached("12")
	must(f.Delete(pod("a", 1, 13)))
	pop("a: Updated 11, Deleted 13")
	expect("an earlier change of another object is queued", "11", "13")
	pop("b: Updated 12")
	expect("the producer has not said that 13 is reached", "12", "13")
	f.Reached("13")
	f.Reached("20")
	expect("a bookmark", "20", "13")

	must(f.Replace(nil, "30"))
	pop("b: Deleted 12?")
	expect("a tombstone is of its list", "30", "30")
	must(f.Replace(pods(pod("a", 3, 2)), "4"))
	pop("a: Replaced 2")
	expect("the server was restored", "4", "4")
	must(f.Merge("", nil, pods(pod("a", 3, 5)), "6"))
	pop("a: Replaced 5")
	expect("a difference", "6", "5")
	f.Reached("")
	expect("the resource has gone", "", "")
	must(f.Update(pod("a", 3, 7)))
	pop("a: Updated 7")
	expect("without a list", "", "7")
}
