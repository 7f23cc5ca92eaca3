package feed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
)

// haltable is a store whose streams block while the test holds the token.
type haltable struct {
	storage.Store
	token chan struct{}
}

func (h haltable) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	stream, err := h.Store.Watch(ctx, prefix, after)
	return haltableStream{stream, h.token}, err
}

type haltableStream struct {
	storage.Stream
	token chan struct{}
}

func (s haltableStream) Next() (storage.Batch, error) {
	batch, err := s.Stream.Next()
	<-s.token
	s.token <- struct{}{}
	return batch, err
}

// TestCompactionDoesNotOvertakeTheCaches though next to no history is
// to be kept.
func TestCompactionDoesNotOvertakeTheCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := haltable{openStore(t), make(chan struct{}, 1)}
		store.token <- struct{}{}
		first := write(t, store, podA)
		c := watchcache.New(podResource(), watchcache.Options{})
		feed := feed.New(store, []*watchcache.Cache{c}, feed.Options{})
		run(t, feed)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- storage.CompactLoop(ctx, feed.Compactable(store), storage.CompactionOptions{Interval: time.Second, Retention: time.Nanosecond})
		}()
		w := watching(t, c, watchcache.WatchOptions{After: first})
		<-store.token
		var want []string
		for range 3 {
			want = append(want, fmt.Sprintf("MODIFIED one/a@%d", write(t, store, podA)))
			time.Sleep(5 * time.Second)
		}
		store.token <- struct{}{}
		time.Sleep(5 * time.Second)
		expect(t, drain(t, w), want...)
		if oldest, err := store.Oldest(t.Context()); err != nil || oldest != now(t, store) {
			t.Errorf("the oldest revision is %d after all, %v", oldest, err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("compaction ended with %v", err)
		}
	})
}

// TestCompactionIsNoticed at once if it is the server's own, and soon if another server has compacted.
func TestCompactionIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		own, other := startRig(t, store, nil, feed.Options{}), startRig(t, store, nil, feed.Options{})
		first, second := write(t, store, podA), write(t, store, podB)
		synctest.Wait()
		if err := own.feed.Compactable(store).Compact(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if got := own.feed.Compacted(); got != first {
			t.Errorf("the feed knows of a compaction to %d, want %d", got, first)
		}
		time.Sleep(20 * time.Second)
		if got := other.feed.Compacted(); got != first {
			t.Errorf("another feed knows of a compaction to %d, want %d", got, first)
		}
		if err := store.Compact(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if err := own.feed.Compactable(store).Compact(t.Context(), first); !errors.Is(err, storage.ErrCompacted) || own.feed.Compacted() != first {
			t.Errorf("less than what another has compacted: %v, compacted to %d", err, own.feed.Compacted())
		}
		time.Sleep(20 * time.Second)
		if got := own.feed.Compacted(); got != second {
			t.Errorf("the feed knows of a compaction to %d, want %d", got, second)
		}
	})
}
