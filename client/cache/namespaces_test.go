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
