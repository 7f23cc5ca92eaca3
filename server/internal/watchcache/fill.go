package watchcache

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// startFill begins to fill a member from a list, or makes the fill that runs
// start over. The feed's lock is held, Run is running, and position is set.
func (f *Feed) startFill(m *member) {
	m.epoch++
	m.pending, m.overflow = nil, false
	m.repairs = nil
	if m.filling {
		return
	}
	m.filling = true
	ctx := f.ctx
	f.group.Go(func() error { return f.fill(ctx, m) })
}

// fill lists until a list can be joined with the stream without a gap.
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
			f.opts.Logger.Warn("filling a cache failed: trying again", "resource", m.cache.res.GroupResource(), "error", err, "delay", delay)
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

// beginFill also returns which objects may be taken over as they are. After the
// store has gone back in time that is none: another write than the one that is
// known may have had their revision.
func (f *Feed) beginFill(m *member) (epoch int, held btree.Tree[*Object], removed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.loaded.Store(0)
	if m.overflow {
		// What was dropped is older than the list that is made now.
		m.pending, m.overflow = nil, false
	}
	if !m.distrust {
		held = m.cache.state.Load().tree
	}
	return m.epoch, held, m.removed
}

// join makes the list the member's state and applies what the stream has
// brought in the meantime. It is false if something is missing between the
// two, and the list has to be made again.
func (f *Feed) join(ctx context.Context, m *member, epoch int, objects []*Object, revision storage.Revision) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.removed {
		return true, nil
	}
	if m.epoch != epoch || m.overflow {
		return false, nil
	}
	first, generation := !m.cache.isReady(), m.cache.generation.Load()
	differences, err := m.cache.fill(objects, revision, m.distrust)
	if err != nil {
		return false, err
	}
	for i := range m.pending {
		if m.pending[i].Revision > revision {
			f.collect(m, &m.pending[i])
		}
	}
	m.cache.Apply(m.changes)
	m.cache.open() // only now: the stream, and the feed's progress, may be ahead of the list
	m.changes, m.pending = nil, nil
	m.filling, m.distrust = false, false
	if first || m.cache.generation.Load() != generation {
		f.wantPast(m)
	} else {
		f.askForPast() // of others, which wait for this fill
	}
	f.publish()
	if first {
		level := slog.LevelInfo
		if len(objects) == 0 {
			level = slog.LevelDebug // most kinds have none, and nobody waits for those
		}
		f.opts.Logger.Log(ctx, level, "cache filled", "resource", m.cache.res.GroupResource(), "objects", len(objects), "revision", revision)
	} else {
		f.opts.Logger.Info("cache brought up to date from a list", "resource", m.cache.res.GroupResource(), "differences", differences, "revision", revision)
	}
	return true, nil
}

// load reads all of a member's objects at one revision. The next page is
// fetched while one is decoded on all cores.
func (f *Feed) load(ctx context.Context, m *member, held btree.Tree[*Object]) ([]*Object, storage.Revision, error) {
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
	var objects []*Object
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

// decodePage appends the page's objects. One that the cache holds at the same
// revision is taken over as it is; so is the last good state of one that
// cannot be decoded, or that is looked up in the store.
func (f *Feed) decodePage(ctx context.Context, m *member, items []storage.KeyValue, held func(string) (*Object, bool), objects []*Object) []*Object {
	start := len(objects)
	objects = append(objects, make([]*Object, len(items))...)
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

func (f *Feed) decodeItem(ctx context.Context, m *member, item *storage.KeyValue, held func(string) (*Object, bool)) *Object {
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
			// If the store does not tell, the object is shown when it is well again.
			had, _ = m.cache.lastGood(ctx, f.store, m.prefix, key, item.Modified)
		}
		return had
	}
	o.created, o.steady = item.Created, item.Modified
	return o
}
