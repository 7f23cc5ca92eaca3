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
