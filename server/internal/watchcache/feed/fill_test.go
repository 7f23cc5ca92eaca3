package feed_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// slowLists is a store whose lists arrive long after they were read.
type slowLists struct {
	storage.Store
	deliver chan struct{}
}

func (s slowLists) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page, err := s.Store.List(ctx, prefix, opts)
	<-s.deliver
	return page, err
}

// TestReadsWaitUntilTheFillHasCaughtUp: a cache must not serve the objects of the
// list that fills it at the revision of changes that the stream has delivered
// meanwhile. The test reads the cache while one of those changes is decoded.
func TestReadsWaitUntilTheFillHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		write(t, store, podA)
		var during storage.Revision
		var c *watchcache.Cache
		checked, decode := false, state.Decoder(podResource())
		c = watchcache.New(podResource(), watchcache.Options{Decode: func(key string, value []byte, revision storage.Revision) (*watchcache.Object, error) {
			if revision == during {
				checked = true
				s := c.Current()
				if _, ok := s.Get(podB.Key()); s.Revision() >= during && !ok {
					t.Errorf("the state at %d lacks what was written at %d", s.Revision(), during)
				}
			}
			return decode(key, value, revision)
		}})
		lists := slowLists{store, make(chan struct{})}
		run(t, feed.New(lists, []*watchcache.Cache{c}, feed.Options{}))
		during = write(t, store, podB)
		synctest.Wait()
		close(lists.deliver)
		synctest.Wait()
		if s := c.Current(); !checked || s.Len() != 2 || s.Revision() != during {
			t.Errorf("in the end %d objects at %d, want 2 at %d; checked in between: %v", s.Len(), s.Revision(), during, checked)
		}
	})
}
