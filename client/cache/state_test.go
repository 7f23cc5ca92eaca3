package cache

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStateIsWhatTheQueueLeadsTo: it is the same at each moment on the way from
// the queue to the Indexer.
func TestStateIsWhatTheQueueLeadsTo(t *testing.T) {
	indexer := NewIndexer[*metav1.PartialObjectMetadata](nil, nil)
	fifo := NewDeltaFIFO(FIFOOptions[*metav1.PartialObjectMetadata]{Known: indexer})
	object := func(key, version string) *metav1.PartialObjectMetadata {
		namespace, name, err := SplitObjectKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version}}
	}
	expect := func(when, namespace, want string) {
		t.Helper()
		var got []string
		for _, obj := range fifo.State(namespace) {
			got = append(got, obj.Namespace+"/"+obj.Name+"@"+obj.ResourceVersion)
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", when, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("empty", "", "[]")
	must(indexer.Replace([]*metav1.PartialObjectMetadata{object("a/kept", "1"), object("a/changed", "1"), object("a/deleted", "1"), object("b/kept", "1")}))
	must(fifo.Update(object("a/changed", "2")))
	must(fifo.Update(object("a/changed", "3")))
	must(fifo.Delete(object("a/deleted", "4")))
	must(fifo.Add(object("b/new", "5")))
	must(fifo.Add(object("b/passing", "6")))
	must(fifo.Delete(object("b/passing", "7")))
	const all = "[a/changed@3 a/kept@1 b/kept@1 b/new@5]"
	expect("queued", "", all)
	for fifo.Len() > 0 {
		must(fifo.Pop(context.Background(), func(item Item[*metav1.PartialObjectMetadata]) error {
			expect("in hand, not applied", "", all)
			for _, d := range item.Deltas {
				if d.Type == Deleted {
					must(indexer.Delete(d.Object))
				} else {
					must(indexer.Update(d.Object))
				}
			}
			expect("in hand, applied", "", all)
			return nil
		}))
		expect("popped", "", all)
	}
	expect("a namespace", "a", "[a/changed@3 a/kept@1]")
	expect("another", "b", "[b/kept@1 b/new@5]")
}
