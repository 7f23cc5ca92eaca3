package cache

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func metadataAt(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func TestGetOfADeltaFIFO(t *testing.T) {
	c := newHandled()
	expect := func(when, want string) {
		t.Helper()
		got := "none"
		if obj, exists := c.fifo.Get(metadataAt("a", "")); exists {
			got = obj.ResourceVersion
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	expect("before anything", "none")
	for _, err := range []error{c.fifo.Add(metadataAt("a", "1")), c.fifo.Add(metadataAt("b", "2"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("queued", "1")
	err := c.fifo.Pop(t.Context(), func(Item[*metav1.PartialObjectMetadata]) error {
		expect("in hand", "1")
		return c.indexer.Add(metadataAt("a", "1"))
	})
	if err != nil {
		t.Fatal(err)
	}
	expect("known", "1")
	if err := c.fifo.Update(metadataAt("a", "3")); err != nil {
		t.Fatal(err)
	}
	expect("changed", "3")
	if err := c.fifo.Delete(metadataAt("a", "3")); err != nil {
		t.Fatal(err)
	}
	expect("deleted in the queue", "none")
	if _, exists := c.fifo.Get(metadataAt("", "")); exists {
		t.Error("an object without a key exists")
	}
}
