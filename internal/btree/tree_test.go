package btree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// model is a sorted slice: slow and plainly right.
type model []entry[int]

func (m model) find(key string) (int, bool) {
	return slices.BinarySearchFunc(m, key, func(e entry[int], key string) int { return strings.Compare(e.key, key) })
}

func (m model) set(key string, value int) model {
	i, found := m.find(key)
	out := slices.Clone(m)
	if found {
		out[i] = entry[int]{key, value, int64(value)}
		return out
	}
	return slices.Insert(out, i, entry[int]{key, value, int64(value)})
}

func (m model) delete(key string) (model, bool) {
	i, found := m.find(key)
	if !found {
		return m, false
	}
	return slices.Delete(slices.Clone(m), i, i+1), true
}

func (m model) span(prefix, from string) []entry[int] {
	var out []entry[int]
	for _, e := range m {
		if strings.HasPrefix(e.key, prefix) && e.key >= from {
			out = append(out, e)
		}
	}
	return out
}

func collect(t Tree[int], prefix, from string) []entry[int] {
	var out []entry[int]
	for k, v := range t.Range(prefix, from) {
		out = append(out, entry[int]{k, v, int64(v)})
	}
	return out
}

// check compares a tree with its model and looks at the shape of the nodes.
func check(t *testing.T, tree Tree[int], m model) {
	t.Helper()
	if tree.Len() != len(m) {
		t.Fatalf("Len is %d, want %d", tree.Len(), len(m))
	}
	if got := collect(tree, "", ""); !slices.Equal(got, []entry[int](m)) {
		t.Fatalf("content is %v, want %v", got, m)
	}
	if tree.root != nil {
		checkNode(t, tree.root, true, "", "")
	}
	checkSince(t, tree, m)
}

// checkSince asks for what is above a few stamps, which are the values.
func checkSince(t *testing.T, tree Tree[int], m model) {
	t.Helper()
	for _, stamp := range []int{-1, 0, 100, 1000, 2500, 2900, 2990, 2999} {
		var got, want []int
		for v, at := range tree.Since(int64(stamp)) {
			if got = append(got, v); at != int64(v) {
				t.Fatalf("%d has the stamp %d", v, at)
			}
		}
		for _, e := range m {
			if e.value > stamp {
				want = append(want, e.value)
			}
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("Since(%d) is %v, want %v", stamp, got, want)
		}
	}
}

func checkNode(t *testing.T, n *node[int], root bool, low, high string) (depth, count int) {
	t.Helper()
	if n.size() > maxFill || n.size() == 0 || !root && n.size() < minFill-1 {
		t.Fatalf("a node has %d members", n.size())
	}
	if n.leaf() {
		for _, e := range n.entries {
			if e.stamp > n.latest {
				t.Fatalf("%d is the latest of a leaf that has %d", n.latest, e.stamp)
			}
			if e.key < low || high != "" && e.key >= high {
				t.Fatalf("key %q is outside of [%q,%q)", e.key, low, high)
			}
		}
		return 1, len(n.entries)
	}
	for i, kid := range n.kids {
		lower, upper := low, high
		if i > 0 {
			lower = kid.key
		}
		if i+1 < len(n.kids) {
			upper = n.kids[i+1].key
		}
		d, c := checkNode(t, kid.node, false, lower, upper)
		if c != kid.count {
			t.Fatalf("a child says it has %d entries, and has %d", kid.count, c)
		}
		if kid.node.latest > n.latest {
			t.Fatalf("%d is the latest below a node whose latest is %d", kid.node.latest, n.latest)
		}
		if depth != 0 && d != depth {
			t.Fatalf("leaves lie at depths %d and %d", d, depth)
		}
		depth, count = d, count+c
	}
	return depth + 1, count
}

// TestAgainstModel makes random changes, one by one and in batches, and keeps
// many versions: each must stay what it was.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		keys := []int{50, 2000}[seed%2]
		var tree Tree[int]
		var m model
		type version struct {
			tree Tree[int]
			m    model
		}
		var versions []version
		for step := range 3000 {
			deleting := 0.3 + 0.5*float64(step/1000%2) // grow, shrink, grow
			change := func(set func(string, int), remove func(string) bool) {
				key := fmt.Sprintf("%c/%05d", 'a'+random.IntN(3), random.IntN(keys))
				if random.Float64() >= deleting {
					set(key, step)
					m = m.set(key, step)
					return
				}
				var want bool
				m, want = m.delete(key)
				if got := remove(key); got != want {
					t.Fatalf("Delete(%q) is %v, want %v", key, got, want)
				}
			}
			if random.IntN(10) == 0 {
				b := tree.Batch()
				for range random.IntN(40) {
					change(func(k string, v int) { b.SetAt(k, v, int64(v)) }, b.Delete)
				}
				tree = b.Tree()
				b.SetAt("after", 1, 1<<60) // must not show in the tree that was taken
			} else {
				change(func(k string, v int) {
					b := Batch[int]{tree: tree}
					b.SetAt(k, v, int64(v))
					tree = b.tree
				}, func(k string) (ok bool) {
					tree, ok = tree.Delete(k)
					return ok
				})
			}
			if step%100 == 0 {
				versions = append(versions, version{tree, m})
			}
		}
		for _, v := range versions {
			check(t, v.tree, v.m)
		}
		check(t, tree, m)
		for range 200 {
			prefix := []string{"", "a/", "b/0", "c/00", "d", "\xff"}[random.IntN(6)]
			from := []string{"", fmt.Sprintf("%c/%05d", 'a'+random.IntN(3), random.IntN(keys)), "zzz"}[random.IntN(3)]
			want := m.span(prefix, from)
			if got := collect(tree, prefix, from); !slices.Equal(got, want) {
				t.Fatalf("Range(%q,%q) is %v, want %v", prefix, from, got, want)
			}
			if got := tree.Count(prefix, from); got != len(want) {
				t.Fatalf("Count(%q,%q) is %d, want %d", prefix, from, got, len(want))
			}
		}
	}
}

func TestDeleteEverythingInEveryDirection(t *testing.T) {
	const n = 3000
	key := func(i int) string { return fmt.Sprintf("%06d", i) }
	for name, order := range map[string]func(i int) int{
		"forward":  func(i int) int { return i },
		"backward": func(i int) int { return n - 1 - i },
		"inward":   func(i int) int { return i/2 + i%2*(n-1-i/2*2) },
		"strided":  func(i int) int { return i * 7 % n },
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := Load(n, func(i int) (string, int) { return key(i), i })
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				tree, _ = tree.Delete(key(order(i)))
				if i%97 == 0 && tree.root != nil {
					checkNode(t, tree.root, true, "", "")
				}
			}
			if tree.Len() != 0 || tree.root != nil {
				t.Fatalf("%d entries remain", tree.Len())
			}
		})
	}
}

func TestLoad(t *testing.T) {
	for _, n := range []int{0, 1, loadFill, loadFill + 1, maxFill + 1, 1000, 30_000} {
		var m model
		for i := range n {
			m = append(m, entry[int]{fmt.Sprintf("%08d", i), i, int64(i)})
		}
		tree, err := LoadAt(n, func(i int) (string, int, int64) { return m[i].key, m[i].value, m[i].stamp })
		if err != nil {
			t.Fatal(err)
		}
		check(t, tree, m)
	}
	for _, keys := range [][]string{{"b", "a"}, {"a", "a"}} {
		if _, err := Load(2, func(i int) (string, int) { return keys[i], i }); err == nil {
			t.Errorf("Load of %q succeeded", keys)
		}
	}
}

func TestRangeStopsWhenTheConsumerDoes(t *testing.T) {
	tree, _ := Load(1000, func(i int) (string, int) { return fmt.Sprintf("%04d", i), i })
	seen := 0
	for range tree.Range("", "0500") {
		if seen++; seen == 100 {
			break
		}
	}
	if seen != 100 {
		t.Fatalf("saw %d", seen)
	}
}

// FuzzTree reads a script of operations: a byte for what to do, a byte for
// the key.
func FuzzTree(f *testing.F) {
	f.Add([]byte("\x00a\x00b\x01a\x02c"))
	f.Fuzz(func(t *testing.T, script []byte) {
		var tree Tree[int]
		var m model
		b := tree.Batch()
		for i := 0; i+1 < len(script); i += 2 {
			key := strings.Repeat(string(script[i+1:i+2]), 1+int(script[i]>>6))
			switch script[i] % 4 {
			case 0, 3:
				b.SetAt(key, i, int64(i))
				m = m.set(key, i)
			case 1:
				b.Delete(key)
				m, _ = m.delete(key)
			case 2:
				tree = b.Tree()
				check(t, tree, m)
				if got, want := tree.Count(key, ""), len(m.span(key, "")); got != want {
					t.Fatalf("Count(%q) is %d, want %d", key, got, want)
				}
			}
		}
		check(t, b.Tree(), m)
	})
}

func ExampleTree() {
	var empty Tree[int]
	one := empty.Set("default/a", 1)
	two := one.Set("default/b", 2).Set("kube-system/c", 3)
	for key, value := range two.Range("default/", "") {
		fmt.Println(key, value)
	}
	fmt.Println(one.Len(), two.Len(), two.Count("kube-system/", ""))
	// Output:
	// default/a 1
	// default/b 2
	// 1 3 1
}
