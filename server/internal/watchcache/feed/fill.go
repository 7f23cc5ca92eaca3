package feed

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// startFill begins to fill a member from a list, or makes the running fill start
// over. The lock is held, Run is running, and position is set.
func (f *Feed) startFill(m *member) {
	m.epoch++
	m.pending, m.overflow = nil, false
	m.repairs = nil
	if m.filling {
		return
	}
	m.filling = true
	f.fills(m)
}

// fill lists a member's objects until a list can be joined with the stream without
// a gap.
func (f *Feed) fill(ctx context.Context, m *member) error {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil // follow returns the reason
	}
	delay := retryFirst
	for {
		epoch, held, removed := f.beginFill(m)
		if removed {
			return nil
		}
		objects, revision, err := f.load(ctx, m, held)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, storage.ErrCompacted):
			continue // compacted between two pages
		case errors.Is(err, storage.ErrClosed):
			return err
		case err != nil:
			f.opts.Logger.Warn("filling a cache failed: trying again", "resource", m.cache.Resource().GroupResource(), "error", err, "delay", delay)
			if sleep(ctx, delay) != nil {
				return nil
			}
			delay = min(2*delay, retryLast)
			continue
		}
		done, err := f.join(ctx, m, epoch, objects, revision)
		if done || err != nil {
			return err
		}
	}
}

// beginFill returns the epoch and the objects that may be taken over as they are.
// After the store has gone back in time there are none: in the new history their
// revisions may belong to other writes.
func (f *Feed) beginFill(m *member) (epoch int, held btree.Tree[*watchcache.Object], removed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.loaded.Store(0)
	if m.overflow {
		// The events that were dropped are older than the list that is made now.
		m.pending, m.overflow = nil, false
	}
	if !m.otherHistory {
		held = m.cache.Tree()
	}
	return m.epoch, held, m.removed
}

// join makes the list the member's state and applies the events that the stream
// has delivered meanwhile. It returns false if events are missing between the two:
// the list has to be made again.
func (f *Feed) join(ctx context.Context, m *member, epoch int, objects []*watchcache.Object, revision storage.Revision) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.removed {
		return true, nil
	}
	if m.epoch != epoch || m.overflow {
		return false, nil
	}
	first, generation := !m.cache.IsReady(), m.cache.Generation()
	discrepancies, err := m.cache.Refill(objects, revision, m.otherHistory)
	if err != nil {
		return false, err
	}
	for i := range m.pending {
		if m.pending[i].Revision > revision {
			f.collect(m, &m.pending[i])
		}
	}
	m.cache.Apply(m.changes)
	m.cache.Open() // only now: the feed's progress may be ahead of the list
	m.changes, m.pending = nil, nil
	m.filling, m.otherHistory = false, false
	if first || m.cache.Generation() != generation {
		f.needBackfill(m)
	} else {
		f.requestBackfill() // of others, which wait for this fill
	}
	f.publish()
	if first {
		level := slog.LevelInfo
		if len(objects) == 0 {
			level = slog.LevelDebug // most kinds have none
		}
		f.opts.Logger.Log(ctx, level, "cache filled", "resource", m.cache.Resource().GroupResource(), "objects", len(objects), "revision", revision)
	} else {
		f.opts.Logger.Info("cache brought up to date from a list", "resource", m.cache.Resource().GroupResource(), "differences", discrepancies, "revision", revision)
	}
	return true, nil
}

// load reads all of a member's objects at one revision. The next page is
// fetched while one is decoded on all cores.
func (f *Feed) load(ctx context.Context, m *member, held btree.Tree[*watchcache.Object]) ([]*watchcache.Object, storage.Revision, error) {
	f.relists.Add(1)
	group, ctx := errgroup.WithContext(ctx)
	pages := make(chan storage.Page, 1)
	group.Go(func() error {
		defer close(pages)
		return f.pages(ctx, m.prefix, false, func(p storage.Page) error {
			select {
			case pages <- p:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	var objects []*watchcache.Object
	var revision storage.Revision
	for page := range pages {
		revision = page.Revision
		objects = f.decodePage(ctx, m, page.Items, held.Get, objects)
		m.loaded.Store(int64(len(objects)))
	}
	return objects, revision, group.Wait()
}

// pages lists a prefix at one revision, with or without the values, and calls
// visit with every page.
func (f *Feed) pages(ctx context.Context, prefix string, keysOnly bool, visit func(storage.Page) error) error {
	opts := storage.ListOptions{Limit: f.opts.PageSize, KeysOnly: keysOnly}
	for {
		page, err := f.store.List(ctx, prefix, opts)
		if err != nil {
			return err
		}
		if err := visit(page); err != nil {
			return err
		}
		if !page.More || len(page.Items) == 0 {
			return nil
		}
		opts.At = page.Revision
		opts.From = page.Items[len(page.Items)-1].Key + "\x00"
	}
}

// decodePage appends the page's objects. An object that the cache holds at the
// same revision is taken over as it is. For a value that cannot be decoded the
// cache keeps its present state, or takes the last one that the store can still
// return and that can be decoded.
func (f *Feed) decodePage(ctx context.Context, m *member, items []storage.KeyValue, held func(string) (*watchcache.Object, bool), objects []*watchcache.Object) []*watchcache.Object {
	start := len(objects)
	objects = append(objects, make([]*watchcache.Object, len(items))...)
	decoded := objects[start:]
	workers := min(runtime.GOMAXPROCS(0), len(items)/64+1)
	var wait sync.WaitGroup
	for n := range workers {
		wait.Go(func() {
			for i := n * len(items) / workers; i < (n+1)*len(items)/workers; i++ {
				decoded[i] = f.decodeItem(ctx, m, &items[i], held)
			}
		})
	}
	wait.Wait()
	kept := decoded[:0]
	for _, o := range decoded {
		if o != nil {
			kept = append(kept, o)
		}
	}
	return objects[:start+len(kept)]
}

func (f *Feed) decodeItem(ctx context.Context, m *member, item *storage.KeyValue, held func(string) (*watchcache.Object, bool)) *watchcache.Object {
	key := item.Key[len(m.prefix):]
	had, _ := held(key)
	if had != nil && had.Revision == item.Modified {
		return had
	}
	o, err := m.cache.Decode(key, item.Value, item.Modified)
	if err != nil {
		f.mu.Lock()
		f.skip(item.Key, item.Modified, err)
		f.mu.Unlock()
		if had == nil {
			// If that fails, the object appears with its next value that can be decoded.
			had, _ = m.cache.LastDecodable(ctx, f.store, item.Key, item.Modified)
		}
		return had
	}
	o.CreatedRevision, o.SelectorsStableSince = item.Created, item.Modified
	return o
}
