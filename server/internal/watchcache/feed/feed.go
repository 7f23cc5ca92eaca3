package feed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

const (
	retryFirst = 50 * time.Millisecond
	retryLast  = 5 * time.Second
)

// errInterrupted ends a session so that the next one begins with a list.
var errInterrupted = errors.New("the feed starts over")

// Feed keeps many caches as their store is, over one watch of it. It fills
// each cache from a list at one revision and then applies every change in order.
// A stream that breaks is resumed where it was; if the store no longer has the
// history for that, the feed lists the caches again and applies the discrepancies
// as changes.
//
// All caches that are in step follow one Progress. A cache that is filled again is
// behind them until its fill has joined the stream: for that time it follows a
// Progress of its own, so that reads of the others do not wait for it. What a fill
// costs, it costs on its own goroutine and without the feed's lock, so that events
// of the others do not wait for it either.
//
// All methods may be called concurrently.
type Feed struct {
	store    Source
	opts     Options
	progress *watchcache.Progress
	slots    chan struct{} // one for each fill that may run
	backfill chan struct{} // of length 1; receives when a member may need its backfill

	written acknowledged
	recheck chan struct{} // of length 1; receives when a stream has been resumed

	resumes, relists, checks, discrepancies, unrouted, disorders, lost atomic.Int64
	unsaved                                                            atomic.Int64 // compactions in a row whose tombstones could not be written
	forgotten                                                          atomic.Int64 // compactions that went on without
	compacted                                                          atomic.Int64 // see Compacted
	undecodable                                                        undecodable

	// mu is held while a batch is applied, and by a fill only for moments. The lock
	// order is: mu, then a cache's own lock, then that of a Progress; mu, then that of
	// undecodable.
	mu        sync.Mutex
	members   map[string]*member // by StorePrefix
	order     []*member
	position  storage.Revision // how far the stream has been applied
	placed    bool             // the stream may be resumed at position
	interrupt context.CancelCauseFunc
	fills     func(*member) // starts one; nil when Run is not running
}

// New returns a feed of the given caches. None of them may have another source.
func New(store Source, caches []*watchcache.Cache, opts Options) *Feed {
	opts = opts.withDefaults()
	f := &Feed{
		store:       store,
		opts:        opts,
		progress:    new(watchcache.Progress),
		slots:       make(chan struct{}, opts.FillConcurrency),
		backfill:    make(chan struct{}, 1),
		written:     acknowledged{added: make(chan struct{}, 1)},
		recheck:     make(chan struct{}, 1),
		members:     map[string]*member{},
		undecodable: undecodable{logger: opts.Logger},
	}
	for _, c := range caches {
		f.Add(c)
	}
	return f
}

// Progress returns the Progress that the caches of the feed share while they are in
// step with the stream.
func (f *Feed) Progress() *watchcache.Progress { return f.progress }

// Add feeds one more cache, which becomes ready by itself while the feed runs. A
// cache with the prefix of another replaces that one.
func (f *Feed) Add(c *watchcache.Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	prefix := c.Resource().StorePrefix
	if old := f.members[prefix]; old != nil {
		f.drop(old)
	}
	c.Follow(f.progress)
	if f.opts.ReplayRevisions > 0 {
		c.ExpectHistory()
	}
	m := &member{cache: c, prefix: prefix, initial: f.fills == nil}
	f.members[prefix] = m
	f.order = append(f.order, m)
	if f.fills != nil && f.placed {
		f.startFill(m)
	}
}

// Remove stops feeding a cache and closes it, which ends its watchers.
func (f *Feed) Remove(c *watchcache.Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[c.Resource().StorePrefix]; m != nil && m.cache == c {
		f.drop(m)
	}
}

// drop removes a member and closes its cache. The lock is held.
func (f *Feed) drop(m *member) {
	m.removed = true
	delete(f.members, m.prefix)
	for i := range f.order {
		if f.order[i] == m {
			f.order = append(f.order[:i:i], f.order[i+1:]...)
			break
		}
	}
	m.cache.Close()
	f.requestBackfill() // of others, which may have waited for this member's fill
}

// Run feeds the caches until ctx ends or the store is closed, and returns the
// reason. It retries transient failures of the store. It must not be called twice
// at the same time.
func (f *Feed) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	f.mu.Lock()
	f.placed = false
	f.fills = func(m *member) { group.Go(func() error { return f.fill(ctx, m) }) }
	group.Go(func() error {
		defer f.stopFills()
		return f.follow(ctx)
	})
	if f.opts.ReplayRevisions > 0 {
		group.Go(func() error { return f.runBackfills(ctx) })
	}
	if f.opts.CheckInterval > 0 {
		group.Go(func() error { return f.runChecks(ctx) })
	}
	group.Go(func() error { return f.runWrites(ctx) })
	group.Go(func() error { return f.runRechecks(ctx) })
	group.Go(func() error { return f.runCompacted(ctx) })
	f.mu.Unlock()
	err := group.Wait()
	f.mu.Lock()
	for _, m := range f.order {
		m.filling, m.pending = false, nil
	}
	f.mu.Unlock()
	return err
}

// stopFills prevents further fills: a group must not grow while Run waits for its
// end.
func (f *Feed) stopFills() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fills = nil
}

// follow reads the stream, and begins a new session whenever it breaks.
func (f *Feed) follow(ctx context.Context) error {
	delay := retryFirst
	for {
		began := f.at()
		err := f.session(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, storage.ErrClosed):
			return err
		case errors.Is(err, errInterrupted):
			continue
		}
		if f.at() > began {
			delay = retryFirst
		}
		switch {
		case errors.Is(err, errDisorder):
			f.opts.Logger.Error("the store has sent changes that it must not send: listing again", "error", err, "delay", delay)
			f.disorders.Add(1)
			f.unplace()
		case errors.Is(err, storage.ErrCompacted):
			f.opts.Logger.Warn("the store's history does not reach back to the last change: listing again", "error", err, "delay", delay)
			f.unplace()
		default:
			f.opts.Logger.Warn("the store's change stream broke: resuming", "error", err, "delay", delay)
			f.resumes.Add(1)
		}
		if err := sleep(ctx, delay); err != nil {
			return err
		}
		delay = min(2*delay, retryLast)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// at returns the position.
func (f *Feed) at() storage.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position
}

// unplace makes the next session begin with a list.
func (f *Feed) unplace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.placed = false
	if f.interrupt != nil {
		f.interrupt(errInterrupted)
	}
}

// session reads one stream until it ends.
func (f *Feed) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := f.stream(ctx, cancel)
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return errInterrupted
	}
	return err
}

func (f *Feed) stream(ctx context.Context, cancel context.CancelCauseFunc) error {
	resumed, err := f.place(ctx, cancel)
	if err != nil {
		return err
	}
	stream, err := f.store.Watch(ctx, f.opts.Prefix, f.at())
	if err != nil {
		return err
	}
	if resumed {
		f.requestRecheck()
	}
	for {
		batch, err := stream.Next()
		if err != nil {
			return err
		}
		if err := f.apply(batch); err != nil {
			return err
		}
	}
}

// place makes sure that the stream can begin at position without missing a change:
// position is where the last stream ended, or else the store's current revision,
// and every cache is then filled from a list that is made after it. resumed says
// that it is where the last stream ended.
func (f *Feed) place(ctx context.Context, cancel context.CancelCauseFunc) (resumed bool, err error) {
	f.mu.Lock()
	f.interrupt = cancel
	placed := f.placed
	f.mu.Unlock()
	if placed {
		return true, nil
	}
	now, err := f.store.Current(ctx)
	if err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	wentBack := now < f.progress.Reached()
	if wentBack {
		f.opts.Logger.Warn("the store has gone back in time: all watchers start over", "was", f.progress.Reached(), "is", now)
		f.progress.Restart(now)
		f.compacted.Store(0)
	}
	f.position, f.placed = now, true
	for _, m := range f.order {
		m.otherHistory = m.otherHistory || wentBack
		if wentBack && m.progress != nil {
			m.progress.Restart(now)
		}
		f.startFill(m)
	}
	return false, nil
}

// apply applies one batch of the stream to the caches. It applies nothing of a batch
// that does not follow what came before.
func (f *Feed) apply(batch storage.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := checkOrder(&batch, f.position); err != nil {
		return err
	}
	for i := range batch.Events {
		e := &batch.Events[i]
		m := f.route(e.Key)
		switch {
		case m == nil:
			f.unrouted.Add(1)
		case m.filling:
			f.holdBack(m, *e)
		default:
			m.changes = f.decode(m, e, m.changes)
		}
	}
	for _, m := range f.order {
		if len(m.repairs) > 0 && !m.filling {
			m.changes, m.repairs = m.cache.Repair(m.changes, m.repairs, batch.Revision)
		}
		if len(m.changes) > 0 {
			m.cache.Apply(m.changes)
			clear(m.changes)
			m.changes = m.changes[:0]
		}
	}
	f.position = max(f.position, batch.Revision)
	f.progress.Publish(f.position)
	return nil
}

// reachedByAll returns the revision that every cache that is served has reached.
func (f *Feed) reachedByAll() storage.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	reached := f.progress.Reached()
	for _, m := range f.order {
		if m.progress != nil {
			reached = min(reached, m.progress.Reached())
		}
	}
	return reached
}
