package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// valueSize is about a pod's JSON.
const valueSize = 3 << 10

// Bench measures the calls of the contract on the stores that open returns,
// with values of 3 KiB. open is called once per sub-benchmark.
func Bench(b *testing.B, open func(b *testing.B) storage.Store) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("Create/writers=%d", writers), func(b *testing.B) { benchCreate(b, open(b), writers) })
	}
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("Update/writers=%d", writers), func(b *testing.B) { benchUpdate(b, open(b), writers) })
	}
	b.Run("Get", func(b *testing.B) { benchGet(b, open(b)) })
	b.Run("Current", func(b *testing.B) { benchCurrent(b, open(b)) })
	b.Run("List/keys=10000", func(b *testing.B) { benchList(b, open(b), 10_000) })
	for _, streams := range []int{1, 100} {
		b.Run(fmt.Sprintf("Watch/streams=%d", streams), func(b *testing.B) { benchWatch(b, open(b), streams) })
	}
}

// spread runs work(i) for i below b.N on a number of goroutines.
func spread(b *testing.B, workers int, work func(worker, i int) error) {
	b.Helper()
	var next atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range workers {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				errs[w] = work(w, i)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func benchCreate(b *testing.B, store storage.Store, writers int) {
	value := bytes.Repeat([]byte("x"), valueSize)
	spread(b, writers, func(_, i int) error {
		_, err := store.Create(b.Context(), fmt.Sprintf("/registry/pods/default/pod-%08d", i), value, 0)
		return err
	})
}

func benchUpdate(b *testing.B, store storage.Store, writers int) {
	value := bytes.Repeat([]byte("x"), valueSize)
	revs := make([]storage.Revision, writers)
	keys := make([]string, writers)
	for w := range writers {
		keys[w] = fmt.Sprintf("/registry/pods/default/pod-%08d", w)
		rev, err := store.Create(b.Context(), keys[w], value, 0)
		if err != nil {
			b.Fatal(err)
		}
		revs[w] = rev
	}
	spread(b, writers, func(w, _ int) (err error) {
		revs[w], err = store.Update(b.Context(), keys[w], value, revs[w], 0)
		return err
	})
}

// fillBench creates keys /registry/pods/default/pod-0 and so on.
func fillBench(b *testing.B, store storage.Store, count int) []string {
	b.Helper()
	value := bytes.Repeat([]byte("x"), valueSize)
	keys := make([]string, count)
	errs := make([]error, 32)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := w; i < count && errs[w] == nil; i += len(errs) {
				keys[i] = fmt.Sprintf("/registry/pods/default/pod-%08d", i)
				_, errs[w] = store.Create(b.Context(), keys[i], value, 0)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	return keys
}

func benchGet(b *testing.B, store storage.Store) {
	keys := fillBench(b, store, 1000)
	for i := 0; b.Loop(); i++ {
		if _, err := store.Get(b.Context(), keys[i%len(keys)], 0); err != nil {
			b.Fatal(err)
		}
	}
}

func benchCurrent(b *testing.B, store storage.Store) {
	fillBench(b, store, 1)
	for b.Loop() {
		if _, err := store.Current(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func benchList(b *testing.B, store storage.Store, count int) {
	fillBench(b, store, count)
	b.ReportAllocs()
	for b.Loop() {
		page, err := store.List(b.Context(), "/registry/pods/", storage.ListOptions{})
		if err != nil || len(page.Items) != count {
			b.Fatalf("%d items, %v", len(page.Items), err)
		}
	}
	b.ReportMetric(float64(count)*float64(b.N)/b.Elapsed().Seconds(), "items/s")
}

// benchWatch measures one create followed by its delivery to every stream,
// with sixteen writers.
func benchWatch(b *testing.B, store storage.Store, streams int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	start, err := store.Current(ctx)
	if err != nil {
		b.Fatal(err)
	}
	errs := make([]error, streams)
	var wg sync.WaitGroup
	for i := range streams {
		stream, err := store.Watch(ctx, "/registry/", start)
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			for seen := 0; seen < b.N; {
				batch, err := stream.Next()
				if err != nil {
					errs[i] = err
					return
				}
				seen += len(batch.Events)
			}
		})
	}
	value := bytes.Repeat([]byte("x"), valueSize)
	spread(b, 16, func(_, i int) error {
		_, err := store.Create(ctx, fmt.Sprintf("/registry/pods/default/pod-%08d", i), value, 0)
		return err
	})
	b.StartTimer()
	wg.Wait()
	b.StopTimer()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)*float64(streams)/b.Elapsed().Seconds(), "delivered/s")
}
