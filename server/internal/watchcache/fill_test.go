package watchcache

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/levelwire/levelwire/storage"
)

// slowLists is a store whose lists arrive long after they were made.
type slowLists struct {
	storage.Store
	deliver chan struct{}
}

func (s slowLists) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page, err := s.Store.List(ctx, prefix, opts)
	<-s.deliver
	return page, err
}

// TestNobodyReadsACacheThatIsBehindItsProgress: between the list that fills a
// cache and the changes that came meanwhile, it must not show the one at the
// version of the others. One of these is decoded, and the cache looked at, there.
func TestNobodyReadsACacheThatIsBehindItsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		write(t, store, podA)
		var during storage.Revision
		var c *Cache
		looked, decode := false, decoder(podResource())
		c = New(podResource(), Options{Decode: func(key string, value []byte, revision storage.Revision) (*Object, error) {
			if revision == during {
				looked = true
				s := c.Current()
				if _, ok := s.Get(podB.key()); s.Revision() >= during && !ok {
					t.Errorf("the state at %d lacks what was written at %d", s.Revision(), during)
				}
			}
			return decode(key, value, revision)
		}})
		lists := slowLists{store, make(chan struct{})}
		follow(t, NewFeed(lists, []*Cache{c}, FeedOptions{}))
		during = write(t, store, podB)
		synctest.Wait()
		close(lists.deliver)
		synctest.Wait()
		if s := c.Current(); !looked || s.Len() != 2 || s.Revision() != during {
			t.Errorf("in the end %d objects at %d, want 2 at %d; looked in between: %v", s.Len(), s.Revision(), during, looked)
		}
	})
}
