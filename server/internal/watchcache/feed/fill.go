package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
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
	if m.cache.IsReady() && m.progress == nil {
		m.progress = m.cache.Detach()
	}
	f.fills(m)
}

// fill lists a member's objects until a list can be joined with the stream without
// a gap. While it runs, apply holds the member's events back and does not touch the
// cache, which the fill writes to without the lock.
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
		case errors.Is(err, storage.ErrClosed), errors.Is(err, errRefused):
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
	anew, ok := f.refillable(m, epoch)
	if !ok {
		return false, nil
	}
	first, generation := !m.cache.IsReady(), m.cache.Generation()
	discrepancies, err := m.cache.Refill(objects, revision, anew)
	if err != nil {
		return false, err
	}
	if !f.catchUp(m, epoch, revision, first || m.cache.Generation() != generation) {
		return false, nil
	}
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

// refillable reports whether the stream continues a list that was begun in epoch,
// and whether the cache must drop its log for it.
func (f *Feed) refillable(m *member, epoch int) (anew, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.otherHistory, m.continues(epoch)
}

// catchUpRounds is how often a fill takes the events that were held back before it
// applies the last of them under the feed's lock: each round finds what has come
// during the round before, which is soon nothing.
const catchUpRounds = 64

// catchUp applies the events after revision that were held back, and then has apply
// deliver the member's events again. It returns false if events are missing.
// lacksHistory is set if the cache's log begins with this fill.
func (f *Feed) catchUp(m *member, epoch int, revision storage.Revision, lacksHistory bool) bool {
	for round := 1; ; round++ {
		pending, joined, ok := f.takePending(m, epoch, revision, lacksHistory, round == catchUpRounds)
		if joined || !ok {
			return joined
		}
		f.applyPending(m, pending, revision)
	}
}

// takePending returns the events that are held back; ok is false if some are
// missing. If there are none, or if this is the last round, the member joins the
// stream: its next events are delivered by apply.
func (f *Feed) takePending(m *member, epoch int, revision storage.Revision, lacksHistory, last bool) (pending []storage.Event, joined, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.lacksHistory = m.lacksHistory || lacksHistory
	if !m.continues(epoch) {
		return nil, false, false
	}
	m.otherHistory = false
	if m.progress != nil {
		m.progress.Publish(revision) // for the readers that wait
	}
	pending, m.pending = m.pending, nil
	if len(pending) > 0 && !last {
		return pending, false, true
	}
	f.applyPending(m, pending, revision)
	f.endFill(m)
	return nil, true, true
}

// applyPending applies the events after revision.
func (f *Feed) applyPending(m *member, pending []storage.Event, revision storage.Revision) {
	var changes []watchcache.Change
	for i := range pending {
		if pending[i].Revision > revision {
			changes = f.decode(m, &pending[i], changes)
		}
	}
	m.cache.Apply(changes)
}

// endFill makes a member whose cache has caught up one of those that the stream
// feeds. The lock is held.
func (f *Feed) endFill(m *member) {
	m.filling = false
	f.progress.Publish(f.position)
	if m.progress != nil {
		m.cache.Rejoin(f.progress)
		m.progress = nil
	}
	m.cache.Open() // only now: the feed's progress may be ahead of the list
	if m.lacksHistory {
		m.lacksHistory = false
		f.needBackfill(m)
	} else {
		f.requestBackfill() // of others, which wait for this fill
	}
}

// load reads all of a member's objects at one revision. The next page is
// fetched while one is decoded on all cores. The store lends the pages: each is released
// when it has been decoded, or is not wanted any more.
func (f *Feed) load(ctx context.Context, m *member, held btree.Tree[*watchcache.Object]) ([]*watchcache.Object, storage.Revision, error) {
	f.relists.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, listing := errgroup.WithContext(ctx)
	pages := make(chan storage.Page, 1)
	group.Go(func() error {
		defer close(pages)
		return f.pages(listing, m.prefix, storage.ListOptions{Borrow: true}, func(p storage.Page) error {
			select {
			case pages <- p:
				return nil
			case <-listing.Done():
				release(&p)
				return listing.Err()
			}
		})
	})
	var objects []*watchcache.Object
	var missing []missingObject
	var revision storage.Revision
	var refused error
	for page := range pages {
		if refused != nil {
			release(&page)
			continue
		}
		revision = page.Revision
		objects, refused = f.decodePage(m, &page, held.Get, objects)
		if refused != nil {
			cancel() // no further page
			continue
		}
		missing = appendMissing(missing, objects, page.Items)
		m.loaded.Store(int64(len(objects)))
	}
	err := group.Wait()
	if refused != nil {
		err = refused
	}
	if err == nil && len(missing) > 0 {
		// Only now, when no page is lent: the store may not answer before it has all back.
		f.findMissing(ctx, m, missing, objects)
		objects = slices.DeleteFunc(objects, func(o *watchcache.Object) bool { return o == nil })
	}
	return objects, revision, err
}

// missingObject is an object of a list that the cache does not hold, and whose value cannot
// be decoded.
type missingObject struct {
	at       int // in the list
	key      string
	modified storage.Revision
}

// appendMissing appends those of a page, whose objects are the last ones, and nil.
func appendMissing(missing []missingObject, objects []*watchcache.Object, page []storage.KeyValue) []missingObject {
	start := len(objects) - len(page)
	for i := range page {
		if objects[start+i] == nil {
			missing = append(missing, missingObject{start + i, page[i].Key, page[i].Modified})
		}
	}
	return missing
}

// findMissing takes, for each missing object, the last state that the store can still return
// and that can be decoded. If there is none, the object appears with its next value that can
// be decoded.
func (f *Feed) findMissing(ctx context.Context, m *member, missing []missingObject, objects []*watchcache.Object) {
	workers := min(runtime.GOMAXPROCS(0), len(missing))
	var wait sync.WaitGroup
	for n := range workers {
		wait.Go(func() {
			for _, o := range missing[n*len(missing)/workers : (n+1)*len(missing)/workers] {
				objects[o.at], _ = m.cache.LastDecodable(ctx, f.store, o.key, o.modified)
			}
		})
	}
	wait.Wait()
}

// release ends the loan of a page, if it is one.
func release(page *storage.Page) {
	if page.Release != nil {
		page.Release()
	}
}

// pages lists a prefix at one revision, as opts say, and calls visit with every page.
func (f *Feed) pages(ctx context.Context, prefix string, opts storage.ListOptions, visit func(storage.Page) error) error {
	opts.Limit = f.opts.PageSize
	for {
		page, err := f.store.List(ctx, prefix, opts)
		if err != nil {
			return err
		}
		more, revision, next := page.More && len(page.Items) > 0, page.Revision, ""
		if more {
			next = page.Items[len(page.Items)-1].Key + "\x00"
		}
		if err := visit(page); err != nil || !more {
			return err
		}
		opts.At, opts.From = revision, next
	}
}

// errRefused ends a feed that must not serve what it can read, because the server's
// configuration is why it cannot read more.
var errRefused = errors.New("the storage holds values that this server cannot read")

// decodePage appends the page's objects, and releases the page. An object that the
// cache holds at the same revision is taken over as it is. For a value that cannot be
// decoded the cache keeps its present state; if it has none, nil is appended. It fails with
// errRefused.
func (f *Feed) decodePage(m *member, page *storage.Page, held func(string) (*watchcache.Object, bool), objects []*watchcache.Object) ([]*watchcache.Object, error) {
	items, start := page.Items, len(objects)
	objects = append(objects, make([]*watchcache.Object, len(items))...)
	decoded := objects[start:]
	workers := min(runtime.GOMAXPROCS(0), len(items)/64+1)
	refused := make([]error, workers)
	var wait sync.WaitGroup
	for n := range workers {
		wait.Go(func() {
			for i := n * len(items) / workers; i < (n+1)*len(items)/workers && refused[n] == nil; i++ {
				decoded[i], refused[n] = f.decodeItem(m, &items[i], held)
			}
		})
	}
	wait.Wait()
	release(page)
	for _, err := range refused {
		if err != nil {
			return nil, err
		}
	}
	m.cache.Compress(decoded)
	return objects, nil
}

// decodeItem returns an item's object; what the cache holds, which may be nil, if the
// item cannot be decoded.
func (f *Feed) decodeItem(m *member, item *storage.KeyValue, held func(string) (*watchcache.Object, bool)) (*watchcache.Object, error) {
	key := item.Key[len(m.prefix):]
	had, _ := held(key)
	if had != nil && had.Revision == item.Modified {
		return had, nil
	}
	o, err := m.cache.Decode(key, item.Value, item.Modified)
	if err != nil {
		if refusal := m.refuse(item.Key, err); refusal != nil {
			return nil, refusal
		}
		f.undecodable.skip(item.Key, item.Modified, err)
		return had, nil
	}
	o.CreatedRevision, o.SelectorsStableSince = item.Created, item.Modified
	return o, nil
}

// refuse returns an error if a value that cannot be decoded is a reason not to start:
// it is encrypted, and the server has not the key for it. Clients would see objects as
// deleted, and controllers would act on that. A damaged value is no reason, and nothing
// is once the cache has been served.
func (m *member) refuse(key string, err error) error {
	var unreadable *storage.UnreadableError
	if !m.initial || m.cache.IsReady() || !errors.As(err, &unreadable) || unreadable.Damaged {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", errRefused, key, err)
}
