package feed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// heldLists is a faulty store whose lists with values of one prefix wait for
// deliver, if hold is set.
type heldLists struct {
	*faulty
	prefix  string
	hold    atomic.Bool
	listed  chan struct{} // of capacity 1; receives when a list has been read that waits
	deliver chan struct{}
}

func holdLists(store storage.Store) *heldLists {
	return &heldLists{
		faulty: &faulty{Store: store}, prefix: podResource().StorePrefix, listed: make(chan struct{}, 1), deliver: make(chan struct{}),
	}
}

func (s *heldLists) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page, err := s.faulty.List(ctx, prefix, opts)
	if s.hold.Load() && prefix == s.prefix && !opts.KeysOnly {
		select {
		case s.listed <- struct{}{}:
		default:
		}
		<-s.deliver
	}
	return page, err
}

// TestAFillDelaysNoOtherCache: while the pods are listed again, reads of nodes are
// consistent, and reads of pods wait. The store is not compacted beyond what the
// pods' cache has read.
func TestAFillDelaysNoOtherCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := holdLists(store)
		write(t, store, podA)
		r := startRig(t, store, source, feed.Options{})
		before := r.pods.Current().Revision()
		source.hold.Store(true)
		source.breakWith(storage.ErrCompacted)
		write(t, store, podB)
		synctest.Wait()
		source.repair()
		time.Sleep(time.Second)

		w := watching(t, r.nodes, watchcache.WatchOptions{After: r.nodes.Current().Revision()})
		node := writeKey(t, store, "/registry/minions/n", nodeValue("n"))
		if s, err := r.nodes.NotOlderThan(t.Context(), node); err != nil || s.Len() != 1 {
			t.Errorf("a read of nodes during the list of pods: %d objects, %v", s.Len(), err)
		}
		if events := drain(t, w); len(events) != 1 || w.Reached() != node {
			t.Errorf("a watch of nodes got %q and reached %d, want %d", eventStrings(events), w.Reached(), node)
		}
		if _, err := r.pods.NotOlderThan(t.Context(), node); !errors.Is(err, watchcache.ErrTooLarge) {
			t.Errorf("a stale read of pods was served as fresh: %v", err)
		}
		if got, _ := r.feed.Compactable(store).Current(t.Context()); got != before || r.feed.Stats().Revision != before {
			t.Errorf("the store may be compacted up to %d, statistics say %d, want %d", got, r.feed.Stats().Revision, before)
		}

		read := make(chan watchcache.Snapshot)
		go func() {
			s, err := r.pods.NotOlderThan(t.Context(), node)
			if err != nil {
				t.Error(err)
			}
			read <- s
		}()
		synctest.Wait()
		close(source.deliver)
		if s := <-read; s.Len() != 2 || s.Revision() < node {
			t.Errorf("the read that waited for the list got %s at %d", content(s), s.Revision())
		}
		next := writeKey(t, store, "/registry/minions/m", nodeValue("m"))
		synctest.Wait()
		if got := r.pods.Current().Revision(); got != next || r.feed.Stats().Revision != next {
			t.Errorf("the pods' cache is at %d after the fill, want the stream's %d", got, next)
		}
	})
}

// TestReadsThatWaitFollowTheCache from the shared progress to that of its fill: a
// read that began before the fill must not be released by changes that only the
// other caches have.
func TestReadsThatWaitFollowTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := holdLists(store)
		r := startRig(t, store, source, feed.Options{})
		source.hold.Store(true)
		source.breakWith(storage.ErrCompacted)
		written := write(t, store, podA)
		read := make(chan watchcache.Snapshot)
		go func() {
			s, err := r.pods.NotOlderThan(t.Context(), written)
			if err != nil {
				t.Error(err)
			}
			read <- s
		}()
		synctest.Wait()
		source.repair()
		time.Sleep(time.Second)
		node := writeKey(t, store, "/registry/minions/n", nodeValue("n"))
		if _, err := r.nodes.NotOlderThan(t.Context(), node); err != nil {
			t.Error(err)
		}
		close(source.deliver)
		if s := <-read; s.Len() != 1 {
			t.Errorf("the read got %s at %d, want the pod of %d", content(s), s.Revision(), written)
		}
	})
}

// TestEventsDoNotWaitForAFill: while a fill of pods decodes what was held back,
// events of nodes are delivered. Time is real: what waits for a lock would stop the
// clock of a bubble.
func TestEventsDoNotWaitForAFill(t *testing.T) {
	store := openStore(t)
	source := holdLists(store)
	source.hold.Store(true)
	var heldBack atomic.Int64
	decoding, proceed, decode := make(chan struct{}), make(chan struct{}), state.Decoder(podResource())
	pods := watchcache.New(podResource(), watchcache.Options{Decode: func(key string, value []byte, revision storage.Revision) (*watchcache.Object, error) {
		if int64(revision) == heldBack.Load() {
			close(decoding)
			<-proceed
		}
		return decode(key, value, revision)
	}})
	nodes := watchcache.New(nodeResource(), watchcache.Options{})
	f := feed.New(source, []*watchcache.Cache{pods, nodes}, feed.Options{ReplayRevisions: -1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	<-source.listed
	heldBack.Store(int64(write(t, store, podA)))
	reads := func(c *watchcache.Cache, revision storage.Revision) {
		t.Helper()
		if _, err := c.NotOlderThan(ctx, revision); err != nil {
			t.Error(err)
		}
	}
	reads(nodes, writeKey(t, store, "/registry/minions/n", nodeValue("n"))) // the stream has brought both
	close(source.deliver)
	<-decoding
	last := writeKey(t, store, "/registry/minions/m", nodeValue("m"))
	reads(nodes, last)
	close(proceed)
	reads(pods, last)
	if pods.Current().Len() != 1 || nodes.Current().Len() != 2 {
		t.Errorf("%s and %s are in the caches", content(pods.Current()), content(nodes.Current()))
	}
}
