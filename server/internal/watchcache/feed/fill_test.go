package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
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

// lender is a store that lends values, and overwrites them when a loan ends.
type lender struct {
	storage.Store
	lent, loans atomic.Int64 // pages, and how many of them have not been released
	during      atomic.Int64 // calls of Get, times the loans that were open
	listed      func() error // called with each list
}

func (l *lender) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	l.during.Add(l.loans.Load())
	return l.Store.Get(ctx, key, at)
}

func (l *lender) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page, err := l.Store.List(ctx, prefix, opts)
	if err != nil || !opts.Borrow || len(page.Items) == 0 {
		return page, err
	}
	if l.listed != nil {
		if err := l.listed(); err != nil {
			return storage.Page{}, err
		}
	}
	page.Items = slices.Clone(page.Items)
	for i := range page.Items {
		page.Items[i].Value = bytes.Clone(page.Items[i].Value)
	}
	l.lent.Add(1)
	l.loans.Add(1)
	page.Release = func() {
		for i := range page.Items {
			for at := range page.Items[i].Value {
				page.Items[i].Value[at] = '!'
			}
		}
		l.loans.Add(-1)
	}
	return page, nil
}

// writePods writes so many pods, of several pages in the tests below.
func writePods(t *testing.T, store storage.Store, count int) {
	t.Helper()
	for i := range count {
		write(t, store, pod{Namespace: "one", Name: fmt.Sprintf("pod-%03d", i), Node: "n1", Phase: "Running"})
	}
}

// TestFillsGiveBackWhatTheyBorrow: a cache keeps nothing of the values that a store has
// lent, also where a value cannot be decoded, and no loan is forgotten.
func TestFillsGiveBackWhatTheyBorrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods, pageSize = 300, 64
		store := openStore(t)
		writePods(t, store, pods)
		writeKey(t, store, "/registry/pods/one/pod-100", []byte(`{"kind":"Pod"`))
		source := &lender{Store: store}
		c := watchcache.New(podResource(), watchcache.Options{})
		run(t, feed.New(source, []*watchcache.Cache{c}, feed.Options{PageSize: pageSize}))
		if lent, loans := source.lent.Load(), source.loans.Load(); lent != (pods+pageSize-1)/pageSize || loans != 0 {
			t.Errorf("%d pages are lent, %d of them still", lent, loans)
		}
		if during := source.during.Load(); during != 0 {
			t.Errorf("the store was asked for values during %d loans: it may not answer before it has all back", during)
		}
		if n := c.Current().Len(); n != pods {
			t.Errorf("%d objects, want %d", n, pods)
		}
		for i := range pods {
			p := pod{Namespace: "one", Name: fmt.Sprintf("pod-%03d", i), Node: "n1", Phase: "Running"}
			o, ok := c.Current().Get(p.Key())
			if !ok {
				t.Fatalf("%s is missing", p.Key())
			}
			if want := objectOf(t, c, p, o.Revision); !bytes.Equal(o.JSON(), want.JSON()) || o.Attributes.Name != p.Name || o.Attributes.Fields[0] != p.Node {
				t.Fatalf("%s is %s with attributes %+v", p.Key(), o.JSON(), o.Attributes)
			}
		}
	})
}

// TestFillsThatEndGiveBackWhatTheyBorrow: so do fills that end early, because their context
// or the store does, or because the server must not start.
func TestFillsThatEndGiveBackWhatTheyBorrow(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, source *lender, cancel func()){
		"the context": func(_ *testing.T, source *lender, cancel func()) {
			source.listed = func() error {
				if source.lent.Load() == 2 {
					cancel()
				}
				return nil
			}
		},
		"the store": func(_ *testing.T, source *lender, _ func()) {
			source.listed = func() error {
				if source.lent.Load() == 2 {
					return storage.ErrClosed
				}
				return nil
			}
		},
		"a value that is encrypted": func(t *testing.T, source *lender, _ func()) {
			writeKey(t, source.Store, "/registry/pods/one/pod-000", storage.Unreadable(&storage.UnreadableError{Reason: "no key"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				writePods(t, store, 300)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				source := &lender{Store: store}
				end(t, source, cancel)
				c := watchcache.New(podResource(), watchcache.Options{})
				err := feed.New(source, []*watchcache.Cache{c}, feed.Options{PageSize: 32}).Run(ctx)
				if err == nil || c.IsReady() {
					t.Errorf("the feed ended with %v, ready: %v", err, c.IsReady())
				}
				if lent, loans := source.lent.Load(), source.loans.Load(); lent == 0 || loans != 0 {
					t.Errorf("%d pages are lent, %d of them still", lent, loans)
				}
			})
		})
	}
}
