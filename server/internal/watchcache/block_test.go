package watchcache

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	blockForm  = NewForm("test block")
	secondForm = NewForm("second test block")
)

// keysOf makes a block that lists the keys of its run.
func keysOf(run Run) (Block, error) {
	var keys []string
	for i := range run.Len() {
		o := run.Object(i)
		keys = append(keys, fmt.Sprintf("%s@%d", o.Key, o.Revision))
	}
	text := strings.Join(keys, " ")
	return Block{Bytes: []byte(text), Size: len(text)}, nil
}

// blocksOf reads a snapshot through its blocks.
func blocksOf(t *testing.T, s Snapshot, from string) string {
	t.Helper()
	runs, ok := s.Runs(nil, from)
	if !ok {
		t.Fatal("there are no runs of everything")
	}
	var parts []string
	for run := range runs {
		b, err := run.Block(blockForm, 0, keysOf)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, string(b.Bytes))
	}
	return strings.Join(parts, " ")
}

func objectsOf(s Snapshot, from string) string {
	var keys []string
	for o := range s.Range("", from) {
		keys = append(keys, fmt.Sprintf("%s@%d", o.Key, o.Revision))
	}
	return strings.Join(keys, " ")
}

// TestBlocksMatchTheirObjects changes a cache at random while snapshots of all
// ages are read through blocks.
func TestBlocksMatchTheirObjects(t *testing.T) {
	for _, budget := range []int64{0, -1, 10_000} {
		c := filled(t, Options{BlockBytes: budget}, numbered(800)...)
		random := rand.New(rand.NewPCG(8, 9))
		var old []Snapshot
		at := 10
		for range 60 {
			var changes []Change
			for range 1 + random.IntN(30) {
				at++
				p := pod{Namespace: "default", Name: fmt.Sprintf("pod-%05d", random.IntN(1200))}
				if random.IntN(3) == 0 {
					changes = append(changes, gone(p.Key(), rev(at)))
				} else {
					changes = append(changes, put(t, c, p, rev(at)))
				}
			}
			c.Apply(changes)
			now := c.Current()
			old = append(old, now)
			earlier, err := c.Exact(t.Context(), max(rev(10), now.Revision()-rev(random.IntN(40))))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []Snapshot{now, earlier, old[random.IntN(len(old))]} {
				from := []string{"", fmt.Sprintf("default/pod-%05d", random.IntN(1200))}[random.IntN(2)]
				if got, want := blocksOf(t, s, from), objectsOf(s, from); got != want {
					t.Fatalf("budget %d, revision %d from %q: the blocks are\n%s\nand the objects\n%s", budget, s.Revision(), from, got, want)
				}
			}
			stats := c.Stats()
			if limit := max(0, cmp.Or(budget, 160<<20)); stats.BlockBytes > limit || stats.FormBytes < stats.BlockBytes {
				t.Fatalf("%d bytes of blocks with a budget of %d, %d of forms", stats.BlockBytes, limit, stats.FormBytes)
			}
		}
		// What is kept is of the newest state only.
		live := map[uint64]bool{}
		runs, _ := c.Current().Runs(nil, "")
		for run := range runs {
			id, _ := run.Leaf()
			live[id] = true
		}
		for _, leaf := range c.blocks.Leaves() {
			if !live[leaf] {
				t.Fatalf("a block of leaf %d is kept, which is in no newest state", leaf)
			}
		}
		if _, err := c.Fill(nil, 1); err != nil { // back in time: the cache drops its log and its blocks
			t.Fatal(err)
		}
		if n := len(c.blocks.Leaves()); n != 0 || c.Stats().BlockBytes != 0 {
			t.Fatalf("%d leaves have blocks after the state was replaced", n)
		}
	}
}

// numbered are pods with keys in ascending order.
func numbered(n int) []pod {
	pods := make([]pod, n)
	for i := range pods {
		pods[i] = pod{Namespace: "default", Name: fmt.Sprintf("pod-%05d", i)}
	}
	return pods
}

func firstRun(t *testing.T, c *Cache) Run {
	t.Helper()
	runs, _ := c.Current().Runs(nil, "")
	for run := range runs {
		return run
	}
	t.Fatal("no run")
	return Run{}
}

func TestABlockIsMadeOnce(t *testing.T) {
	c := filled(t, Options{}, numbered(20)...)
	run := firstRun(t, c)
	broken := errors.New("broken")
	if _, err := run.Block(blockForm, 0, func(Run) (Block, error) { return Block{}, broken }); !errors.Is(err, broken) {
		t.Fatalf("an error that became %v", err)
	}
	var made atomic.Int32
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			_, err := run.Block(blockForm, 0, func(r Run) (Block, error) {
				made.Add(1)
				return keysOf(r)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if b, ok := run.Kept(blockForm, 0); !ok || string(b.Bytes) == "" {
		t.Error("a block that was made is not at hand")
	}
	if _, ok := run.Kept(blockForm, 1); ok {
		t.Error("a block is kept in a generation in which it was not made")
	}
	if _, ok := run.Head(3).Kept(blockForm, 0); ok {
		t.Error("a part of a run has the block of the whole")
	}
	if made.Load() != 1 {
		t.Errorf("16 readers made the block %d times", made.Load())
	}
}

func TestBlocksHaveGenerations(t *testing.T) {
	c := filled(t, Options{}, numbered(20)...)
	run := firstRun(t, c)
	made := 0
	get := func(form FormID, generation uint64) string {
		b, err := run.Block(form, generation, func(Run) (Block, error) {
			made++
			return Block{Bytes: fmt.Appendf(nil, "%d", generation)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(b.Bytes)
	}
	for _, step := range []struct {
		form       FormID
		generation uint64
		made       int
	}{
		{blockForm, 2, 1}, {secondForm, 1, 2}, {blockForm, 2, 2},
		{blockForm, 1, 3}, {blockForm, 1, 4}, // an older generation: not shared
		{blockForm, 3, 5}, {blockForm, 3, 5}, {blockForm, 2, 6}, {secondForm, 1, 6},
	} {
		if got := get(step.form, step.generation); got != fmt.Sprint(step.generation) || made != step.made {
			t.Fatalf("generation %d is %q after %d were made, want %d", step.generation, got, made, step.made)
		}
	}
}

func TestLeastRecentlyUsedBlocksAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := filled(t, Options{BlockBytes: 10_000}, numbered(400)...)
		made := 0
		sweep := func(form FormID) int {
			made = 0
			runs, _ := c.Current().Runs(nil, "")
			for run := range runs {
				if _, err := run.Block(form, 0, func(Run) (Block, error) {
					made++
					return Block{Bytes: make([]byte, 1000)}, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			return made
		}
		all := sweep(blockForm)
		if all < 10 {
			t.Fatalf("%d leaves are too few", all)
		}
		const kept = 10_000 / 1256
		if again := sweep(blockForm); again != all-kept {
			t.Errorf("a list that does not fit makes %d blocks again of %d, want %d", again, all, all-kept)
		}
		if other := sweep(secondForm); other != all {
			t.Errorf("another form made %d blocks of %d", other, all)
		}
		if again := sweep(blockForm); again != all-kept {
			t.Errorf("a form that was not used evicted used ones: %d blocks made, want %d", again, all-kept)
		}
		time.Sleep(time.Minute)
		sweep(secondForm)
		if again := sweep(blockForm); again != all {
			t.Errorf("the least recently used stayed: %d blocks made of %d", again, all)
		}
	})
}
