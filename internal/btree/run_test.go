package btree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func runsOf(t *testing.T, tree Tree[int], prefix, from string) []entry[int] {
	var out []entry[int]
	for run := range tree.Runs(prefix, from) {
		if run.Len() == 0 {
			t.Fatal("an empty run")
		}
		if half := run.Head(run.Len() / 2); half.Len() != run.Len()/2 || half.Whole() {
			t.Fatalf("half of a run of %d has %d entries, whole: %v", run.Len(), half.Len(), half.Whole())
		}
		for i := range run.Len() {
			key, value := run.At(i)
			out = append(out, entry[int]{key, value, int64(value)})
		}
	}
	return out
}

func TestRunsAreTheRange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var tree Tree[int]
	for i := range 5000 {
		tree = tree.Set(fmt.Sprintf("%c/%05d", 'a'+random.IntN(3), random.IntN(4000)), i)
	}
	if got := runsOf(t, Tree[int]{}, "", ""); got != nil {
		t.Fatalf("the empty tree has %v", got)
	}
	whole := 0
	for run := range tree.Runs("b/", "") {
		if run.Whole() {
			whole++
		}
	}
	if whole < 20 {
		t.Fatalf("%d whole leaves in a third of the tree", whole)
	}
	for range 3000 {
		prefix := []string{"", "a/", "b/0", "b/", "c/00", "c/", "d", "0", "\xff"}[random.IntN(9)]
		from := []string{"", fmt.Sprintf("%c/%05d", 'a'+random.IntN(3), random.IntN(4000)), "zzz"}[random.IntN(3)]
		if got, want := runsOf(t, tree, prefix, from), collect(tree, prefix, from); !slices.Equal(got, want) {
			t.Fatalf("Runs(%q,%q) are %v, want %v", prefix, from, got, want)
		}
	}
	for range tree.Runs("", "b/") {
		break // a consumer that stops is not asked again
	}
}

// TestIdentities changes a tree at random and looks after every batch that
// exactly the leaves that are no longer in it were given up.
func TestIdentities(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var tree Tree[int]
	known := map[uint64][]entry[int]{}
	for step := range 400 {
		before := tree
		b := tree.Batch()
		gone := map[uint64]bool{}
		b.Succeed(func(id uint64) {
			if gone[id] {
				t.Fatalf("leaf %d was given up twice", id)
			}
			gone[id] = true
		})
		for range 1 + random.IntN(60) {
			key := fmt.Sprintf("%04d", random.IntN(3000))
			if random.IntN(10) < 4+step/100 {
				b.Delete(key)
			} else {
				b.Set(key, step)
			}
			if random.IntN(20) == 0 {
				b.Tree()
			}
		}
		tree = b.Tree()
		beside := tree.Batch()
		beside.Set("0000", step)
		for run := range beside.Tree().Runs("", "0000") {
			if _, ok := run.Identity(); ok {
				t.Fatal("a leaf of a tree beside the newest one has an identity")
			}
			break
		}
		for id := range gone {
			if _, ok := known[id]; !ok {
				t.Fatalf("leaf %d was retired though its identity was never returned", id)
			}
			delete(known, id)
		}
		present := map[uint64]bool{}
		for run := range tree.Runs("", "") {
			var entries []entry[int]
			for i := range run.Len() {
				key, value := run.At(i)
				entries = append(entries, entry[int]{key, value, int64(value)})
			}
			id, ok := run.Identity()
			if !ok || present[id] {
				t.Fatalf("a leaf of the newest tree has identity %d, %v, of two: %v", id, ok, present[id])
			}
			if was, ok := known[id]; ok && !slices.Equal(was, entries) {
				t.Fatalf("leaf %d was %v and is %v", id, was, entries)
			}
			known[id], present[id] = entries, true
		}
		if len(present) != len(known) {
			t.Fatalf("%d leaves are known, the tree has %d", len(known), len(present))
		}
		for run := range before.Runs("", "") {
			if id, ok := run.Identity(); ok && !present[id] {
				t.Fatalf("leaf %d has been replaced, and keeps its identity", id)
			}
		}
	}
	tree.Retire(func(id uint64) { delete(known, id) })
	if len(known) != 0 {
		t.Fatalf("%v outlived their tree", slices.Collect(maps.Keys(known)))
	}
	for run := range tree.Runs("", "") {
		if _, ok := run.Identity(); ok {
			t.Fatal("a leaf of a retired tree has an identity")
		}
	}
}
