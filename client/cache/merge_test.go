package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// handled moves everything queued into its indexer, and records the calls that
// a handler would get.
type handled struct {
	indexer *Indexer[*metav1.PartialObjectMetadata]
	fifo    *DeltaFIFO[*metav1.PartialObjectMetadata]
	calls   []string
}

func newHandled() *handled {
	indexer := NewIndexer[*metav1.PartialObjectMetadata](nil, nil)
	return &handled{indexer: indexer, fifo: NewDeltaFIFO(FIFOOptions[*metav1.PartialObjectMetadata]{Known: indexer})}
}

func (c *handled) drain(t *testing.T, most int) {
	for ; most > 0 && c.fifo.Len() > 0; most-- {
		err := c.fifo.Pop(context.Background(), func(item Item[*metav1.PartialObjectMetadata]) error {
			for _, d := range item.Deltas {
				old, existed := c.indexer.Get(item.Key)
				switch {
				case d.Type == Deleted:
					if existed {
						c.calls = append(c.calls, fmt.Sprintf("%s deleted at %s, unknown %v", item.Key, d.Object.ResourceVersion, d.FinalStateUnknown))
					}
					if err := c.indexer.Delete(d.Object); err != nil {
						return err
					}
					continue
				case !existed || old.ResourceVersion != d.Object.ResourceVersion:
					c.calls = append(c.calls, item.Key+" is "+d.Object.ResourceVersion)
				}
				if err := c.indexer.Update(d.Object); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (c *handled) state() []string {
	var all []string
	for _, obj := range c.indexer.List() {
		all = append(all, obj.Name+"@"+obj.ResourceVersion)
	}
	slices.Sort(all)
	return all
}

// TestMergeIsReplace: two queues with the same past, one of which gets the list
// and the other the diff, lead to the same state and the same calls.
func TestMergeIsReplace(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	version := 0
	object := func(name string) *metav1.PartialObjectMetadata {
		version++
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: fmt.Sprint(version)}}
	}
	for round := range 200 {
		one, other := newHandled(), newHandled()
		both := func(f func(*DeltaFIFO[*metav1.PartialObjectMetadata]) error) {
			for _, c := range []*handled{one, other} {
				if err := f(c.fifo); err != nil {
					t.Fatal(err)
				}
			}
		}
		list := map[string]*metav1.PartialObjectMetadata{} // what the server has
		for range random.IntN(30) {
			obj := object(fmt.Sprint(random.IntN(10)))
			if random.IntN(3) == 0 {
				delete(list, obj.Name)
				both(func(f *DeltaFIFO[*metav1.PartialObjectMetadata]) error { return f.Delete(obj) })
			} else {
				list[obj.Name] = obj
				both(func(f *DeltaFIFO[*metav1.PartialObjectMetadata]) error { return f.Update(obj) })
			}
			if random.IntN(4) == 0 {
				one.drain(t, 3)
				other.drain(t, 3)
			}
		}
		for range random.IntN(10) { // unseen
			obj := object(fmt.Sprint(random.IntN(12)))
			if delete(list, obj.Name); random.IntN(2) == 0 {
				list[obj.Name] = obj
			}
		}
		var all, dropped, changed []*metav1.PartialObjectMetadata
		for _, obj := range list {
			all = append(all, obj)
		}
		state := other.fifo.State("")
		for _, obj := range state {
			if list[obj.Name] != obj {
				dropped = append(dropped, obj)
			}
		}
		for _, obj := range all {
			if !slices.Contains(state, obj) {
				changed = append(changed, obj)
			}
		}
		if err := errors.Join(one.fifo.Replace(all, "7"), other.fifo.Merge("", dropped, changed, "7")); err != nil {
			t.Fatal(err)
		}
		one.drain(t, 1000)
		other.drain(t, 1000)
		slices.Sort(one.calls)
		slices.Sort(other.calls)
		if !slices.Equal(one.state(), other.state()) || !slices.Equal(one.calls, other.calls) || other.fifo.Processed() != "7" || !other.fifo.HasSynced() {
			t.Fatalf("round %d:\n%v calls %v\n%v calls %v", round, one.state(), one.calls, other.state(), other.calls)
		}
	}
}

func TestMergeOfNothingSyncs(t *testing.T) {
	synced := 0
	fifo := NewDeltaFIFO(FIFOOptions[*metav1.PartialObjectMetadata]{OnSynced: func() { synced++ }})
	for range 2 {
		if err := fifo.Merge("", nil, nil, "3"); err != nil {
			t.Fatal(err)
		}
	}
	if !fifo.HasSynced() || synced != 1 {
		t.Errorf("synced %d times", synced)
	}
	fifo.Close()
	if err := fifo.Merge("", nil, nil, "4"); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestMergeSyncsWhenTheWholeStateIsProcessed: what was queued before, and is in
// hand, belongs to the first complete state, as after Replace.
func TestMergeSyncsWhenTheWholeStateIsProcessed(t *testing.T) {
	c := newConsumer()
	must(t, c.fifo.Add(pod("in-hand", 1, 1)), c.fifo.Add(pod("queued", 2, 2)))
	err := c.fifo.Pop(t.Context(), func(item Item[*corev1.Pod]) error {
		must(t, c.fifo.Merge("", nil, []*corev1.Pod{pod("changed", 3, 3)}, "3"))
		return c.indexer.Add(item.Deltas.Newest().Object)
	})
	must(t, err)
	for _, want := range []string{"queued", "changed"} {
		if c.fifo.HasSynced() {
			t.Errorf("synced before %q was processed", want)
		}
		if key, _, initial := c.pop(t); key != want || !initial {
			t.Errorf("popped %q, initial %v, want %q", key, initial, want)
		}
	}
	if !c.fifo.HasSynced() {
		t.Error("not synced after everything was processed")
	}
}
