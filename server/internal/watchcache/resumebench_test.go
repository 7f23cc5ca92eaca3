package watchcache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

const manyPods = 200_000

// manyCached returns a cache of many pods, and the revision of its fill.
func manyCached(b *testing.B, opts Options) (*Cache, storage.Revision) {
	b.Helper()
	c := New(podResource(), opts)
	objects := make([]*Object, manyPods)
	for i, o := range benchObjects(b, c, manyPods) {
		objects[i] = rewritten(b, o, rev(i+1))
	}
	if _, err := c.Fill(objects, manyPods); err != nil {
		b.Fatal(err)
	}
	return c, manyPods
}

// rewritten is the object written again at a revision, with the same content.
func rewritten(b *testing.B, o *Object, revision storage.Revision) *Object {
	at := o.AtRevision(revision)
	out, err := NewObject(at.Key, revision, at.Attributes, at.JSON())
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// touchPods changes n pods, spread over all, one in each batch.
func touchPods(b *testing.B, c *Cache, random *rand.Rand, n int) {
	next := c.Current().Revision()
	state := c.Current()
	for _, i := range random.Perm(manyPods)[:n] {
		next++
		old, _ := state.Get(fmt.Sprintf("one/pod-%07d", i))
		o := rewritten(b, old, next)
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: next}})
	}
}

// BenchmarkCoalescedResume is the first watch from before the log, and a later one,
// while more or fewer of 200,000 objects have changed.
func BenchmarkCoalescedResume(b *testing.B) {
	for _, changed := range []int{manyPods / 10_000, manyPods / 100, manyPods} {
		c, after := manyCached(b, Options{HistoryEvents: 16})
		touchPods(b, c, rand.New(rand.NewPCG(1, 2)), changed)
		buf := make([]Event, 256)
		resume := func() {
			w, err := c.Watch(WatchOptions{After: after})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			for delivered := 0; ; {
				n, err := w.Read(buf)
				if err != nil {
					b.Fatal(err)
				}
				if delivered += n; n == 0 {
					if delivered < changed {
						b.Fatalf("%d events, want %d", delivered, changed)
					}
					return
				}
			}
		}
		b.Run(fmt.Sprintf("first/changed=%d", changed), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.mu.Lock()
				c.summary = nil
				c.mu.Unlock()
				resume()
			}
		})
		b.Run(fmt.Sprintf("next/changed=%d", changed), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resume()
			}
		})
	}
}

// BenchmarkApply is one change of one of 200,000 objects.
func BenchmarkApply(b *testing.B) {
	c, _ := manyCached(b, Options{})
	random := rand.New(rand.NewPCG(1, 2))
	var objects []*Object
	for o := range c.Current().Range("", "") {
		objects = append(objects, o)
	}
	next := c.Current().Revision()
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		next++
		same := objects[random.IntN(len(objects))]
		o := NewUnversioned(same.Key, next, same.Attributes, same.JSON())
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: next}})
	}
}
