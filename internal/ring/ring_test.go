package ring

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRingAgainstASlice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var r Ring[int]
	var model []int
	for i := range 200_000 {
		// Long runs of pushes and of pops, so that it grows, wraps and empties.
		if (i/7000)%2 == 0 == (random.IntN(4) > 0) {
			r.Push(i)
			model = append(model, i)
		} else if len(model) > 0 {
			if front, got := r.Front(), r.Pop(); front != model[0] || got != model[0] {
				t.Fatalf("step %d: front %d, popped %d, want %d", i, front, got, model[0])
			}
			model = model[1:]
		}
		if r.Len() != len(model) {
			t.Fatalf("step %d: length %d, want %d", i, r.Len(), len(model))
		}
	}
	var rest []int
	for r.Len() > 0 {
		rest = append(rest, r.Pop())
	}
	if !slices.Equal(rest, model) {
		t.Fatal("the rest differs")
	}
}

func TestRingLetsGoOfABurst(t *testing.T) {
	var r Ring[*int]
	for range 3 * large {
		r.Push(new(int))
	}
	for r.Len() > 0 {
		r.Pop()
	}
	if len(r.items) > large {
		t.Errorf("an empty ring holds room for %d", len(r.items))
	}
}
