package cache

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func podIn(namespace, name string, version int) *corev1.Pod {
	p := pod(name, 1, version)
	p.Namespace = namespace
	return p
}

func TestNamespacesAreReplacedApart(t *testing.T) {
	indexer := NewIndexer[*corev1.Pod](nil, nil)
	c := &consumer{fifo: NewDeltaFIFO(FIFOOptions[*corev1.Pod]{Known: indexer, Namespaces: []string{"a", "ab"}}), indexer: indexer}
	drain := func(want ...string) {
		t.Helper()
		var got []string
		for c.fifo.Len() > 0 {
			key, deltas, initial := c.pop(t)
			if initial {
				deltas += "!"
			}
			got = append(got, key+" "+deltas)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("popped %q, want %q", got, want)
		}
	}
	replace := func(namespace string, pods ...*corev1.Pod) {
		t.Helper()
		if err := c.fifo.ReplaceNamespace(namespace, pods); err != nil {
			t.Fatal(err)
		}
	}
	replace("a", podIn("a", "x", 1), podIn("a", "y", 2))
	drain("a/x Replaced 1!", "a/y Replaced 2!")
	if c.fifo.HasSynced() {
		t.Error("synced, though a namespace has not been listed")
	}
	// What is missing from one namespace's list is gone from that one only.
	replace("a", podIn("a", "x", 1))
	replace("ab", podIn("ab", "z", 3))
	drain("a/x Replaced 1", "a/y Deleted 2?", "ab/z Replaced 3!")
	if !c.fifo.HasSynced() {
		t.Error("not synced, though every namespace has been listed")
	}
	replace("a")
	drain("a/x Deleted 1?")
	if _, there := indexer.Get("ab/z"); !there || indexer.Len() != 1 {
		t.Errorf("left: %v", indexer.Keys())
	}
	// The version is that which all of them have reached, as the producer says.
	if got := c.fifo.Processed(); got != "" {
		t.Errorf("reached %q", got)
	}
	c.fifo.Reached("7")
	if got := c.fifo.Processed(); got != "7" {
		t.Errorf("reached %q", got)
	}
}

func TestDroppedObjectsAreNamed(t *testing.T) {
	var dropped []string
	c := newConsumer()
	c.fifo = NewDeltaFIFO(FIFOOptions[*corev1.Pod]{Known: c.indexer, OnDropped: func(last *corev1.Pod) { dropped = append(dropped, last.Name+last.ResourceVersion) }})
	expect := func(what string, want ...string) {
		t.Helper()
		if slices.Sort(dropped); !slices.Equal(dropped, want) {
			t.Errorf("%s dropped %v, want %v", what, dropped, want)
		}
		dropped = nil
	}
	must(t, c.fifo.Add(pod("known", 1, 1)), c.fifo.Add(pod("deleted", 2, 2)), c.fifo.Delete(pod("deleted", 2, 3)))
	c.pop(t)
	must(t, c.fifo.Add(pod("in-hand", 3, 4)), c.fifo.Add(pod("queued", 4, 5)))
	c.pop(t) // what was deleted
	must(t, c.fifo.Pop(t.Context(), func(item Item[*corev1.Pod]) error {
		must(t, c.fifo.Replace([]*corev1.Pod{pod("kept", 5, 6)}, "7"))
		expect("a list", "in-hand4", "known1", "queued5")
		return c.indexer.Add(item.Deltas.Newest().Object)
	}))
	must(t, c.fifo.Replace([]*corev1.Pod{pod("kept", 5, 6)}, "8"))
	expect("the same list")
	must(t, c.fifo.Merge("", []*corev1.Pod{pod("kept", 5, 6), pod("gone", 6, 6)}, []*corev1.Pod{pod("new", 7, 9)}, "9"))
	expect("a difference", "kept6")
}
