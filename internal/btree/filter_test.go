package btree

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

var seed = maphash.MakeSeed()

// labelled is a value with two traits that change, and one that is its own.
type labelled struct {
	name, app, node string
}

func traitOf(kind, value string) uint64 { return maphash.String(seed, kind+value) }

func labelledTraits(to []uint64, v labelled) []uint64 {
	return append(to, traitOf("name", v.name), traitOf("app", v.app), traitOf("node", v.node))
}

// having returns the keys of the entries that have an app, or an app and one of two
// nodes, and how many entries were yielded.
func having(t Tree[labelled], prefix, from, app string, nodes ...string) (keys []string, yielded int) {
	wanted := [][]uint64{{traitOf("app", app)}}
	if len(nodes) > 0 {
		anyOf := []uint64{}
		for _, node := range nodes {
			anyOf = append(anyOf, traitOf("node", node))
		}
		wanted = append(wanted, anyOf)
	}
	for run := range t.Having(prefix, from, wanted, labelledTraits) {
		for i := range run.Len() {
			yielded++
			key, v := run.At(i)
			if v.app == app && (len(nodes) == 0 || slices.Contains(nodes, v.node)) {
				keys = append(keys, key)
			}
		}
	}
	return keys, yielded
}

func rangeHaving(t Tree[labelled], prefix, from, app string, nodes ...string) (keys []string) {
	for key, v := range t.Range(prefix, from) {
		if v.app == app && (len(nodes) == 0 || slices.Contains(nodes, v.node)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestHavingMissesNothing changes a tree at random, with batches that keep the
// filters and some that do not, and asks every version for what it has.
func TestHavingMissesNothing(t *testing.T) {
	for round := range uint64(8) {
		random := rand.New(rand.NewPCG(round, 7))
		tree := Tree[labelled]{}
		var versions []Tree[labelled]
		for range 60 {
			b := tree.Batch()
			if random.IntN(8) > 0 {
				b.Filter(func(to []uint64, v, replaced labelled) []uint64 {
					if v == replaced {
						return to
					}
					return labelledTraits(to, v)
				})
			}
			for range random.IntN(150) {
				name := fmt.Sprintf("ns%d/p%04d", random.IntN(4), random.IntN(3000))
				if random.IntN(4) == 0 {
					b.Delete(name)
					continue
				}
				if random.IntN(50) == 0 {
					versions = append(versions, b.Tree())
				}
				b.Set(name, labelled{name: name, app: fmt.Sprint("a", random.IntN(60)), node: fmt.Sprint("n", random.IntN(5))})
			}
			tree = b.Tree()
			versions = append(versions, tree)
			for range 20 {
				asked := versions[random.IntN(len(versions))]
				prefix, from := "", ""
				if random.IntN(2) == 0 {
					prefix = fmt.Sprintf("ns%d/", random.IntN(5))
				}
				if random.IntN(3) == 0 {
					from = fmt.Sprintf("ns%d/p%04d", random.IntN(4), random.IntN(3000))
				}
				app, nodes := fmt.Sprint("a", random.IntN(62)), []string(nil)
				for range random.IntN(3) {
					nodes = append(nodes, fmt.Sprint("n", random.IntN(6)))
				}
				got, _ := having(asked, prefix, from, app, nodes...)
				if want := rangeHaving(asked, prefix, from, app, nodes...); !slices.Equal(got, want) {
					t.Fatalf("round %d: of %q from %q with app %s on %v there are %v, want %v", round, prefix, from, app, nodes, got, want)
				}
			}
		}
	}
}

// TestHavingLooksAtFewEntries, also after many changes that the filters have
// followed, and when nothing has the trait.
func TestHavingLooksAtFewEntries(t *testing.T) {
	const n = 20_000
	value := func(i, turn int) labelled {
		return labelled{name: fmt.Sprint(i), app: fmt.Sprint("a", (i+turn)%1000), node: "n"}
	}
	key := func(i int) string { return fmt.Sprintf("%02d/%06d", i/1000, i) }
	tree, err := Load(n, func(i int) (string, labelled) { return key(i), value(i, 0) })
	if err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		for _, c := range []struct {
			app  string
			want int
		}{{"a500", n / 1000}, {"none", 0}} {
			keys, yielded := having(tree, "", "", c.app)
			if len(keys) != c.want || yielded > 3*maxFill*(c.want+2) {
				t.Errorf("%s: %d entries have %s, looked at %d", when, len(keys), c.app, yielded)
			}
			wanted := [][]uint64{{traitOf("app", c.app)}}
			if counted := tree.CountHaving("", wanted, n); counted != yielded {
				t.Errorf("%s: counted %d entries that may have %s, looked at %d", when, counted, c.app, yielded)
			}
			if counted, most := tree.CountHaving("", wanted, 1), min(1, yielded); counted != most {
				t.Errorf("%s: counted %d entries, at most 1", when, counted)
			}
		}
	}
	if counted := tree.CountHaving("03/", [][]uint64{{traitOf("app", "none")}}, n); counted != 1000 {
		t.Errorf("without filters: counted %d entries in a thousand", counted)
	}
	if counted := tree.CountHaving("", [][]uint64{{traitOf("app", "none")}}, 500); counted != 500 {
		t.Errorf("without filters: counted %d entries, at most 500", counted)
	}
	look("loaded")
	for turn := 1; turn <= 2; turn++ {
		for i := range n {
			b := tree.Batch()
			b.Filter(func(to []uint64, v, _ labelled) []uint64 { return labelledTraits(to, v) })
			b.Set(key(i), value(i, turn))
			tree = b.Tree()
		}
		look(fmt.Sprint("turn ", turn))
	}
	b := tree.Batch()
	b.Filter(func(to []uint64, v, _ labelled) []uint64 { return labelledTraits(to, v) })
	for i := range n {
		b.Set(key(i)+"x", value(i, 2))
		b.Delete(key(i))
	}
	tree = b.Tree()
	look("all anew")
}

// TestHavingWhileTheTreeChanges has readers make filters of the versions that a
// writer replaces.
func TestHavingWhileTheTreeChanges(t *testing.T) {
	var mu sync.Mutex
	var newest Tree[labelled]
	current := func() Tree[labelled] {
		mu.Lock()
		defer mu.Unlock()
		return newest
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				tree, app := current(), fmt.Sprint("a", (i+r)%50)
				got, _ := having(tree, "", "", app)
				if want := rangeHaving(tree, "", "", app); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", app, got, want)
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		b := newest.Batch()
		b.Filter(func(to []uint64, v, _ labelled) []uint64 { return labelledTraits(to, v) })
		name := strings.Repeat("k", 3) + fmt.Sprint(random.IntN(2000))
		b.Set(name, labelled{name: name, app: fmt.Sprint("a", random.IntN(50))})
		tree := b.Tree()
		mu.Lock()
		newest = tree
		mu.Unlock()
	}
	close(stop)
	readers.Wait()
}

func BenchmarkHaving(b *testing.B) {
	for _, n := range []int{1000, 200_000, 1_000_000} {
		key := func(i int) string { return fmt.Sprintf("namespace-%03d/pod-%07d", i*100/n, i) }
		rare := max(1, n/20)
		tree, err := Load(n, func(i int) (string, labelled) {
			return key(i), labelled{name: key(i), app: fmt.Sprint("a", i%rare), node: fmt.Sprint("n", i%max(1, n/230))}
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("20-of/%d", n), func(b *testing.B) {
			for i := range b.N {
				having(tree, "", "", fmt.Sprint("a", i%rare))
			}
		})
		b.Run(fmt.Sprintf("set/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				at := i * 7919 % n
				batch := tree.Batch()
				batch.Filter(func(to []uint64, v, replaced labelled) []uint64 {
					if v.app == replaced.app {
						return to
					}
					return labelledTraits(to, v)
				})
				batch.Set(key(at), labelled{name: key(at), app: fmt.Sprint("a", at%rare)})
				batch.Tree()
			}
		})
	}
}
