package watchcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/memory"
)

const manyPods = 200_000

// manyCached is a cache of many pods, whose log has forgotten the fill's
// revision, and that revision.
func manyCached(b *testing.B, opts Options) (*Cache, storage.Revision) {
	b.Helper()
	c := New(podResource(), opts)
	objects := make([]*Object, manyPods)
	for i, o := range benchObjects(b, c, manyPods) {
		objects[i] = o.at(rev(i + 1))
		objects[i].written = 0
	}
	if _, err := c.Fill(objects, manyPods); err != nil {
		b.Fatal(err)
	}
	return c, manyPods
}

// touchPods changes n pods, spread over all, one in each batch.
func touchPods(c *Cache, random *rand.Rand, n int) {
	next := c.Current().Revision()
	state := c.Current()
	for _, i := range random.Perm(manyPods)[:n] {
		next++
		old, _ := state.Get(fmt.Sprintf("one/pod-%07d", i))
		o := old.at(next)
		o.written = 0
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: next}})
	}
}

// BenchmarkCoalescedResume is the first of those who come back from before the
// log, and one who follows, while more or fewer of 200,000 objects have changed.
func BenchmarkCoalescedResume(b *testing.B) {
	for _, changed := range []int{manyPods / 10_000, manyPods / 100, manyPods} {
		c, after := manyCached(b, Options{HistoryEvents: 16})
		touchPods(c, rand.New(rand.NewPCG(1, 2)), changed)
		buf := make([]Event, 256)
		resume := func() {
			w, err := c.Watch(WatchOptions{After: after})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			for told := 0; ; {
				n, err := w.Read(buf)
				if err != nil {
					b.Fatal(err)
				}
				if told += n; n == 0 {
					if told < changed {
						b.Fatalf("%d events, want %d", told, changed)
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
		o := &Object{Key: same.Key, Revision: next, Attributes: same.Attributes, JSON: same.JSON}
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: next}})
	}
}

// BenchmarkBackfill reads the history that a cache's log has room for, of pods of
// 3 kB, from the store that a server was started on. What is read and belongs to
// nobody is what a second replay costs, for a kind that is defined at run time.
func BenchmarkBackfill(b *testing.B) {
	const revisions, pods = 32768, 4096
	for name, open := range map[string]func(b *testing.B) (storage.Store, error){
		"memory": func(*testing.B) (storage.Store, error) { return memory.Open(memory.Options{}) },
		"embedded": func(b *testing.B) (storage.Store, error) {
			return etcd.Embed(b.Context(), etcd.EmbedConfig{Dir: b.TempDir()})
		},
	} {
		b.Run(name, func(b *testing.B) {
			store, err := open(b)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			writeHistory(b, store, revisions, pods)
			through, err := store.Current(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			source := store.(Source)
			b.Run("recollect", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c := New(podResource(), Options{HistoryBytes: 256 << 20})
					if _, err := c.Fill(nil, through); err != nil {
						b.Fatal(err)
					}
					f := NewFeed(source, []*Cache{c}, FeedOptions{})
					if err := f.replayOnce(b.Context(), f.order); err != nil {
						b.Fatal(err)
					}
					if n := c.Stats().HistoryLen; n < revisions-pods {
						b.Fatalf("%d events are recollected", n)
					}
					b.ReportMetric(float64(c.Stats().HistoryBytes)/1e6, "history-MB")
				}
			})
			b.Run("read", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := source.Replay(b.Context(), "/registry/", 1, through, func([]storage.Event) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// writeHistory writes pods again and again.
func writeHistory(b *testing.B, store storage.Store, revisions, pods int) {
	b.Helper()
	const writers = 64
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			last := map[string]storage.Revision{}
			for i := range revisions / writers {
				p := pod{namespace: "one", name: fmt.Sprintf("pod-%d-%d", w, i%(pods/writers)), node: "n1", phase: "Running"}
				value := bytes.Replace(p.value(), []byte(`"spec":{`), []byte(`"spec":{"more":"`+strings.Repeat("x", 2800)+`",`), 1)
				key, err := "/registry/pods/"+p.key(), error(nil)
				if seen := last[key]; seen == 0 {
					last[key], err = store.Create(b.Context(), key, value, 0)
				} else {
					last[key], err = store.Update(b.Context(), key, value, seen, 0)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}
