package btree

import (
	"fmt"
	"testing"
)

func loaded(b *testing.B, n int) (Tree[*int], []string) {
	b.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%03d/pod-%07d", i*100/n, i)
	}
	tree, err := Load(n, func(i int) (string, *int) { return keys[i], new(int) })
	if err != nil {
		b.Fatal(err)
	}
	return tree, keys
}

func BenchmarkTree(b *testing.B) {
	for _, n := range []int{1000, 200_000, 1_000_000} {
		tree, keys := loaded(b, n)
		value := new(int)
		key := func(i int) string { return keys[i*7919%n] }
		b.Run(fmt.Sprintf("get/%d", n), func(b *testing.B) {
			for i := range b.N {
				tree.Get(key(i))
			}
		})
		b.Run(fmt.Sprintf("set/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				tree.Set(key(i), value)
			}
		})
		b.Run(fmt.Sprintf("batch-of-16/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i += 16 {
				batch := tree.Batch()
				for k := range 16 {
					batch.Set(key(i+k), value)
				}
				batch.Tree()
			}
		})
		b.Run(fmt.Sprintf("count/%d", n), func(b *testing.B) {
			for i := range b.N {
				tree.Count("namespace-050/", key(i))
			}
		})
		b.Run(fmt.Sprintf("range-all/%d", n), func(b *testing.B) {
			for range b.N {
				for range tree.Range("", "") {
				}
			}
		})
	}
}
