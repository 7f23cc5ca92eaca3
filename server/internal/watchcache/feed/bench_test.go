package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/memory"
)

func BenchmarkFill(b *testing.B) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	const n = 100_000
	for i := range n {
		p := pod{Namespace: fmt.Sprint("ns-", i%50), Name: fmt.Sprintf("pod-%07d", i), Node: "node", Phase: "Running"}
		if _, err := store.Create(b.Context(), "/registry/pods/"+p.Key(), p.Value(), 0); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		c := watchcache.New(podResource(), watchcache.Options{})
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		done := make(chan error)
		f := feed.New(store, []*watchcache.Cache{c}, feed.Options{})
		go func() { done <- f.Run(ctx) }()
		if err := c.WaitReady(ctx); err != nil || c.Current().Len() != n {
			b.Fatal(err, c.Current().Len())
		}
		cancel()
		<-done
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
}

// BenchmarkBackfill reads the history that a cache's log has room for, of pods of
// 3 kB, from the store that a server was started on. "read" is what a second replay
// costs for a custom kind without objects.
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
			source := store.(feed.Source)
			b.Run("prepend", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c := watchcache.New(podResource(), watchcache.Options{HistoryBytes: 256 << 20})
					if _, err := c.Fill(nil, through); err != nil {
						b.Fatal(err)
					}
					f := feed.New(source, []*watchcache.Cache{c}, feed.Options{})
					if err := f.Replay(b.Context()); err != nil {
						b.Fatal(err)
					}
					if n := c.Stats().HistoryLen; n < revisions-pods {
						b.Fatalf("%d events are prepended", n)
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

// writeHistory creates pods and updates them until there are so many revisions.
func writeHistory(b *testing.B, store storage.Store, revisions, pods int) {
	b.Helper()
	const writers = 64
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			last := map[string]storage.Revision{}
			for i := range revisions / writers {
				p := pod{Namespace: "one", Name: fmt.Sprintf("pod-%d-%d", w, i%(pods/writers)), Node: "n1", Phase: "Running"}
				value := bytes.Replace(p.Value(), []byte(`"spec":{`), []byte(`"spec":{"more":"`+strings.Repeat("x", 2800)+`",`), 1)
				key, err := "/registry/pods/"+p.Key(), error(nil)
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

// BenchmarkReadsDuringAFill measures how long a consistent read of nodes takes
// after a write while 100,000 pods are listed again, a tenth of which have changed.
func BenchmarkReadsDuringAFill(b *testing.B) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	const n = 100_000
	for i := range n {
		writePod(b, store, i)
	}
	source := &faulty{Store: store}
	r := &rig{pods: watchcache.New(podResource(), watchcache.Options{}), nodes: watchcache.New(nodeResource(), watchcache.Options{FreshnessWait: time.Minute})}
	f := feed.New(source, []*watchcache.Cache{r.pods, r.nodes}, feed.Options{ReplayRevisions: -1})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	for _, c := range []*watchcache.Cache{r.pods, r.nodes} {
		if err := c.WaitReady(ctx); err != nil {
			b.Fatal(err)
		}
	}
	var longest, reads, sum time.Duration
	for b.Loop() {
		b.StopTimer()
		source.breakWith(storage.ErrCompacted)
		for i := range n / 10 {
			writePod(b, store, i)
		}
		lists := f.Stats().Relists
		source.repair()
		for f.Stats().Relists == lists {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		for len(f.Stats().Fills) > 0 {
			revision := writeKey(b, store, "/registry/minions/n", nodeValue("n"))
			began := time.Now()
			if _, err := r.nodes.NotOlderThan(ctx, revision); err != nil {
				b.Fatal(err)
			}
			longest, sum, reads = max(longest, time.Since(began)), sum+time.Since(began), reads+1
			time.Sleep(time.Millisecond)
		}
	}
	cancel()
	<-done
	b.ReportMetric(float64(longest.Microseconds())/1e3, "ms/longest-read")
	b.ReportMetric(float64(sum.Microseconds())/1e3/float64(reads), "ms/read")
}

func writePod(b *testing.B, store storage.Store, i int) {
	b.Helper()
	write(b, store, pod{Namespace: fmt.Sprint("ns-", i%50), Name: fmt.Sprintf("pod-%07d", i), Node: "node", Phase: "Running"})
}
