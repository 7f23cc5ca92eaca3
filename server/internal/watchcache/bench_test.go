package watchcache

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// benchObjects are n decoded pods that differ in name, on as many nodes.
func benchObjects(b *testing.B, c *Cache, n int) []*Object {
	b.Helper()
	return benchObjectsOn(b, c, n, n)
}

// benchObjectsOn are n decoded pods that differ in name.
func benchObjectsOn(b *testing.B, c *Cache, n, nodes int) []*Object {
	b.Helper()
	objects := make([]*Object, n)
	for i := range objects {
		p := pod{Namespace: "one", Name: fmt.Sprintf("pod-%07d", i), Node: fmt.Sprint("node-", i%nodes), Phase: "Running"}
		objects[i] = objectOf(b, c, p, 1)
	}
	return objects
}

// sleepers makes n watchers that have read everything and sleep, and
// goroutines that read on whenever they are woken until the benchmark ends.
func sleepers(b *testing.B, c *Cache, n int, selection func(i int) *Selection, delivered *atomic.Int64) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for i := range n {
		w, err := c.Watch(WatchOptions{After: c.Current().Revision(), Selection: selection(i)})
		if err != nil {
			b.Fatal(err)
		}
		group.Go(func() {
			defer w.Close()
			buf := make([]Event, 16)
			for {
				select {
				case <-w.Ready():
				case <-ctx.Done():
					return
				}
				for {
					got, err := w.Read(buf)
					if err != nil {
						b.Error(err)
						return
					}
					if delivered.Add(int64(got)); got == 0 {
						break
					}
				}
			}
		})
	}
	b.Cleanup(func() { cancel(); group.Wait() })
}

// BenchmarkAppend is the cost of one event with watchers that wait for it:
// 5,000 watchers each with its own node have one delivery per event, as one
// watcher with the only node has, and should cost about as much.
func BenchmarkAppend(b *testing.B) {
	everything := func(int) *Selection { return nil }
	node := func(i int) *Selection { return selecting(b, "", "", "", fmt.Sprint("spec.nodeName=node-", i)) }
	namespace := func(i int) *Selection { return selecting(b, fmt.Sprint("ns-", i), "", "", "") }
	for _, bench := range []struct {
		name      string
		watchers  int
		nodes     int
		selection func(int) *Selection
	}{
		{"watchers=0", 0, 5000, everything},
		{"watchers=1/only-node", 1, 1, node},
		{"watchers=5000/own-node", 5000, 5000, node},
		{"watchers=5000/other-namespace", 5000, 5000, namespace},
		{"watchers=1/all", 1, 5000, everything},
		{"watchers=5000/all", 5000, 5000, everything},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c := filled(b, Options{})
			objects := benchObjectsOn(b, c, 5000, bench.nodes)
			if _, err := c.Fill(objects, 10); err != nil {
				b.Fatal(err)
			}
			var delivered atomic.Int64
			sleepers(b, c, bench.watchers, bench.selection, &delivered)
			b.ReportAllocs()
			next := storage.Revision(100_000)
			for i := 0; b.Loop(); i++ {
				next++
				same := objects[i%len(objects)]
				o := NewUnversioned(same.Key, next, same.Attributes, same.JSON())
				c.Apply([]Change{{Key: o.Key, Object: o, Revision: next}})
			}
			b.ReportMetric(float64(delivered.Load())/float64(b.N), "delivered/op")
		})
	}
}

// BenchmarkFanOut is the cost of one delivery when watchers keep up with a
// stream of batches.
func BenchmarkFanOut(b *testing.B) {
	for _, watchers := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			c := filled(b, Options{})
			objects := benchObjects(b, c, 1000)
			var delivered atomic.Int64
			sleepers(b, c, watchers, func(int) *Selection { return nil }, &delivered)
			b.ReportAllocs()
			next := storage.Revision(100_000)
			batch := make([]Change, 10)
			b.ResetTimer()
			for n := int64(0); n < int64(b.N); n += int64(len(batch) * watchers) {
				for i := range batch {
					next++
					same := objects[int(next)%len(objects)]
					o := NewUnversioned(same.Key, next, same.Attributes, same.JSON())
					batch[i] = Change{Key: o.Key, Object: o, Revision: next}
				}
				c.Apply(batch)
				for delivered.Load() < n+int64(len(batch)*watchers) {
					runtime.Gosched()
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	c := New(podResource(), Options{})
	objects := benchObjects(b, c, 200_000)
	if _, err := c.Fill(objects, 10); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		c.Apply([]Change{put(b, c, pod{Namespace: "one", Name: fmt.Sprintf("pod-%07d", i*7)}, rev(11+i))})
	}
	b.Run("snapshot+range/200000", func(b *testing.B) {
		for b.Loop() {
			total := 0
			for o := range c.Current().Range("", "") {
				total += o.Size()
			}
		}
	})
	b.Run("select-field/200000", func(b *testing.B) {
		s := selecting(b, "", "", "", "spec.nodeName=node-77")
		for b.Loop() {
			for range c.Current().Select(s, "") {
			}
		}
	})
	b.Run("exact", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := c.Exact(b.Context(), rev(11+i%1000)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	c := New(podResource(), Options{})
	p := pod{Namespace: "one", Name: "pod", Node: "node", Phase: "Running", Labels: map[string]string{"app": "web", "tier": "front"}}
	value := p.Value()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Decode(p.Key(), value, 5); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFill is a start with many objects in the store.
