package feed

import (
	"context"
	"sync"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// A stream that leaves out a change is in order, so the feed cannot notice by
// looking at it. But it knows one thing that the stream must deliver: the writes of
// its own server. Each is looked for in the log of its cache shortly after it was
// acknowledged, and if it is not there, the cache is listed again. That costs a
// write two hundred nanoseconds, and the stream nothing.

// writesInterval is how long a write is left alone before it is looked for: nearly
// all have come by then.
const writesInterval = 100 * time.Millisecond

// maxWrites limits those that wait; beyond it, writes are not looked for.
const maxWrites = 100_000

// acknowledged are writes that the stream has to deliver. All methods may be called
// concurrently.
type acknowledged struct {
	added chan struct{} // of length 1: receives when there are writes

	mu   sync.Mutex
	list []write
}

// write is one write that the store has acknowledged.
type write struct {
	key      string
	revision storage.Revision
	deleted  bool
}

func (a *acknowledged) add(w write) {
	a.mu.Lock()
	if len(a.list) < maxWrites {
		a.list = append(a.list, w)
	}
	a.mu.Unlock()
	select {
	case a.added <- struct{}{}:
	default:
	}
}

// take returns the writes that wait, and removes them.
func (a *acknowledged) take() []write {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.list
	a.list = nil
	return list
}

// Expecting returns a store whose writes the feed looks for in its caches.
func (f *Feed) Expecting(store storage.Store) storage.Store { return expecting{store, f} }

type expecting struct {
	storage.Store
	feed *Feed
}

// Create implements storage.Writer.
func (s expecting) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	revision, err := s.Store.Create(ctx, key, value, ttl)
	return s.expect(write{key, revision, false}, err)
}

// Update implements storage.Writer.
func (s expecting) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	revision, err := s.Store.Update(ctx, key, value, expect, ttl)
	return s.expect(write{key, revision, false}, err)
}

// Delete implements storage.Writer.
func (s expecting) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	revision, err := s.Store.Delete(ctx, key, expect)
	return s.expect(write{key, revision, true}, err)
}

func (s expecting) expect(w write, err error) (storage.Revision, error) {
	if err == nil {
		s.feed.written.add(w)
	}
	return w.revision, err
}

// runWrites looks for acknowledged writes until ctx ends.
func (f *Feed) runWrites(ctx context.Context) error {
	for {
		select {
		case <-f.written.added:
		case <-ctx.Done():
			return nil
		}
		if sleep(ctx, writesInterval) != nil {
			return nil
		}
		writes := f.written.take()
		if f.at() < latest(writes) {
			// Nothing may come after a change that was left out: Current makes the
			// store report progress, after which the next round sees it.
			_, _ = f.store.Current(ctx) // if it fails, the next round asks again
		}
		for _, w := range f.findWrites(writes) {
			f.written.add(w)
		}
	}
}

func latest(writes []write) (revision storage.Revision) {
	for i := range writes {
		revision = max(revision, writes[i].revision)
	}
	return revision
}

// findWrites looks for the writes that the stream has passed, and returns the
// others. A cache that lacks one is listed again.
func (f *Feed) findWrites(writes []write) (ahead []write) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range writes {
		switch m := f.route(w.key); {
		case w.revision > f.position:
			ahead = append(ahead, w)
		case m == nil || m.filling:
		case m.cache.Lacks(w.key[len(m.prefix):], w.revision, w.deleted):
			f.opts.Logger.Error("the store's change stream left out a change: listing again", "key", w.key, "revision", w.revision)
			f.listAgain(m)
		}
	}
	return ahead
}

// listAgain fills a member's cache anew, because the stream left something out. The
// lock is held.
func (f *Feed) listAgain(m *member) {
	f.lost.Add(1)
	if f.fills != nil && f.placed {
		f.startFill(m)
	}
}
