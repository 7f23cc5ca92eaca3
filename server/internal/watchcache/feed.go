package watchcache

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/storage"
)

// Source is what a Feed needs of a store.
type Source interface {
	storage.Reader
	storage.Watcher
	storage.Historian
}

// FeedOptions tunes a Feed. The zero value of every member means its default.
type FeedOptions struct {
	// Prefix that all the caches' keys share; "/registry/".
	Prefix string
	// PageSize is how many objects a fill asks the store for at a time; 1000.
	PageSize int
	// FillConcurrency is how many caches are filled at the same time; 8.
	FillConcurrency int
	// Backlog is how many changes are held back for a cache while it is
	// filled; a fill that takes longer than that starts over; 100000.
	Backlog int
	// ReplayRevisions is how much of the store's history is read at a start, at
	// most, to fill the caches' own; 500000. Negative: none.
	ReplayRevisions int
	// Tombstones is how many deletions are kept in the store, of all resources,
	// when it is compacted; 50000. TombstoneBytes is how many bytes of keys and
	// residues; 32 MiB. TombstoneAge is for how long; 24 h. Up to a batch more may
	// be kept.
	Tombstones     int
	TombstoneBytes int64
	TombstoneAge   time.Duration
	// Now tells the time by which they age; time.Now.
	Now func() time.Time
	// CheckInterval is how often every cache is compared with the store; 10
	// minutes. Negative: never.
	CheckInterval time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
}

func (o FeedOptions) withDefaults() FeedOptions {
	o.Prefix = cmp.Or(o.Prefix, "/registry/")
	o.PageSize = cmp.Or(o.PageSize, 1000)
	o.FillConcurrency = cmp.Or(o.FillConcurrency, 8)
	o.Backlog = cmp.Or(o.Backlog, 100_000)
	o.ReplayRevisions = cmp.Or(o.ReplayRevisions, 500_000)
	o.Tombstones = cmp.Or(o.Tombstones, 50_000)
	o.TombstoneBytes = cmp.Or(o.TombstoneBytes, 32<<20)
	o.TombstoneAge = cmp.Or(o.TombstoneAge, 24*time.Hour)
	o.CheckInterval = cmp.Or(o.CheckInterval, 10*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

const (
	retryFirst = 50 * time.Millisecond
	retryLast  = 5 * time.Second
)

// errInterrupted ends a session in favour of one that begins with a list.
var errInterrupted = errors.New("the feed starts over")

// Feed keeps many caches as their store is, over one watch of it. It fills
// each cache from a list at one revision and then applies every change in
// order. A lost connection is resumed where it was; when the store no longer
// has the history for that, the caches are listed again and the differences
// become events. All methods may be called concurrently.
type Feed struct {
	store    Source
	opts     FeedOptions
	progress *Progress
	slots    chan struct{} // one for each fill that may run
	filled   chan struct{} // receives when a member wants its past; of length 1

	resumes, relists, checks, differences, unrouted, undecodable atomic.Int64

	// mu is held while a batch is applied, and taken before a cache's own lock.
	mu         sync.Mutex
	members    map[string]*member // by StorePrefix
	order      []*member
	position   storage.Revision // how far the stream has been applied
	placed     bool             // position is where the stream goes on
	interrupt  context.CancelCauseFunc
	group      *errgroup.Group // nil when Run is not running
	ctx        context.Context // of group
	unreadable map[string]storage.Revision
}

// member is one cache with what the feed knows about it. The feed's lock
// guards it.
type member struct {
	cache     *Cache
	prefix    string
	filling   bool
	removed   bool
	wantsPast bool            // it has been filled anew, and not been told what was before
	distrust  bool            // what the cache holds is not of the store's history
	epoch     int             // of the stream; a fill from before a break is worthless
	pending   []storage.Event // held back while filling
	overflow  bool            // pending was too long and was dropped
	changes   []Change        // of the batch that is being applied
	repairs   []difference    // found by the check, waiting for a revision
	loaded    atomic.Int64    // objects so far in this fill
}

// NewFeed returns a feed of the given caches. None of them may have another
// source.
func NewFeed(store Source, caches []*Cache, opts FeedOptions) *Feed {
	opts = opts.withDefaults()
	f := &Feed{
		store:      store,
		opts:       opts,
		progress:   new(Progress),
		slots:      make(chan struct{}, opts.FillConcurrency),
		filled:     make(chan struct{}, 1),
		members:    map[string]*member{},
		unreadable: map[string]storage.Revision{},
	}
	for _, c := range caches {
		f.Add(c)
	}
	return f
}

// Progress is what all caches of the feed share.
func (f *Feed) Progress() *Progress { return f.progress }

// Add feeds one more cache, which becomes ready by itself if the feed runs.
// Adding one with the prefix of another replaces that.
func (f *Feed) Add(c *Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	prefix := c.res.StorePrefix
	if old := f.members[prefix]; old != nil {
		f.drop(old)
	}
	c.follow(f.progress)
	if f.opts.ReplayRevisions > 0 {
		c.expectPast()
	}
	m := &member{cache: c, prefix: prefix}
	f.members[prefix] = m
	f.order = append(f.order, m)
	if f.group != nil && f.placed {
		f.startFill(m)
	}
}

// Remove stops feeding a cache and closes it, which ends its watchers.
func (f *Feed) Remove(c *Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[c.res.StorePrefix]; m != nil && m.cache == c {
		f.drop(m)
	}
}

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
	f.publish()
	f.askForPast() // of others, which may have waited for its fill
}

// Run feeds the caches until ctx ends or the store is closed, and returns the
// reason. Failures of the store that may pass are retried. It must not be
// called twice at the same time.
func (f *Feed) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	f.mu.Lock()
	f.group, f.ctx, f.placed = group, ctx, false
	group.Go(func() error {
		defer f.stopFills()
		return f.follow(ctx)
	})
	if f.opts.ReplayRevisions > 0 {
		group.Go(func() error { return f.replayer(ctx) })
	}
	if f.opts.CheckInterval > 0 {
		group.Go(func() error { return f.checkRegularly(ctx) })
	}
	f.mu.Unlock()
	err := group.Wait()
	f.mu.Lock()
	for _, m := range f.order {
		m.filling, m.pending = false, nil
	}
	f.mu.Unlock()
	return err
}

// stopFills lets no more fills begin: a group must not grow while its end is
// waited for.
func (f *Feed) stopFills() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.group, f.ctx = nil, nil
}

// follow reads the stream, again and again when it breaks.
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
		if errors.Is(err, storage.ErrCompacted) {
			f.opts.Logger.Warn("the store's history does not reach back to the last change: listing again", "error", err, "delay", delay)
			f.unplace()
		} else {
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

// session is one stream, from beginning to end.
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
	if err := f.place(ctx, cancel); err != nil {
		return err
	}
	stream, err := f.store.Watch(ctx, f.opts.Prefix, f.at())
	if err != nil {
		return err
	}
	for {
		batch, err := stream.Next()
		if err != nil {
			return err
		}
		f.apply(batch)
	}
}

// place makes sure that position is one from which the stream can go on with
// nothing lost: where it was, or else now, with every cache to be filled from
// a list that is made after it.
func (f *Feed) place(ctx context.Context, cancel context.CancelCauseFunc) error {
	f.mu.Lock()
	f.interrupt = cancel
	placed := f.placed
	f.mu.Unlock()
	if placed {
		return nil
	}
	now, err := f.store.Current(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	wentBack := now < f.progress.Reached()
	if wentBack {
		f.opts.Logger.Warn("the store has gone back in time: all watchers start over", "was", f.progress.Reached(), "is", now)
		f.progress.restart(now)
	}
	f.position, f.placed = now, true
	for _, m := range f.order {
		m.distrust = m.distrust || wentBack
		f.startFill(m)
	}
	return nil
}

// apply enters one batch of the stream into the caches.
func (f *Feed) apply(batch storage.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range batch.Events {
		e := &batch.Events[i]
		m := f.route(e.Key)
		switch {
		case m == nil:
			f.unrouted.Add(1)
		case m.filling:
			f.holdBack(m, *e)
		default:
			f.collect(m, e)
		}
	}
	for _, m := range f.order {
		if len(m.repairs) > 0 && !m.filling {
			f.repair(m, batch.Revision)
		}
		if len(m.changes) > 0 {
			m.cache.Apply(m.changes)
			clear(m.changes)
			m.changes = m.changes[:0]
		}
	}
	f.position = max(f.position, batch.Revision)
	f.publish()
}

// route finds whose key it is: that of the longest prefix that ends in a
// slash.
func (f *Feed) route(key string) *member {
	for end := strings.LastIndexByte(key, '/'); end > 0; end = strings.LastIndexByte(key[:end], '/') {
		if m := f.members[key[:end+1]]; m != nil {
			return m
		}
	}
	return nil
}

// collect decodes an event for the member.
func (f *Feed) collect(m *member, e *storage.Event) {
	change := Change{Key: e.Key[len(m.prefix):], Revision: e.Revision}
	if !e.Deleted {
		o, err := m.cache.Decode(change.Key, e.Value, e.Revision)
		if err != nil {
			f.skip(e.Key, e.Revision, err)
			return
		}
		change.Object = o
	}
	delete(f.unreadable, e.Key)
	m.changes = append(m.changes, change)
}

// skip notes a value that cannot be decoded. The cache keeps the state before
// it, if there was one: showing the object as gone would make controllers act on
// that. The key is logged once for as long as the value stays.
func (f *Feed) skip(key string, revision storage.Revision, err error) {
	if f.unreadable[key] == revision {
		return
	}
	const most = 10_000 // keys remembered: enough to be quiet, too few to matter
	_, known := f.unreadable[key]
	if len(f.unreadable) < most || known {
		f.unreadable[key] = revision
	}
	f.undecodable.Add(1)
	if !known {
		f.opts.Logger.Error("a stored value cannot be decoded and is left out: repair or delete it in the store",
			"key", key, "revision", revision, "error", err)
	}
}

// holdBack keeps an event until the member has been filled.
func (f *Feed) holdBack(m *member, e storage.Event) {
	if m.overflow {
		return
	}
	if len(m.pending) >= f.opts.Backlog {
		m.pending, m.overflow = nil, true
		return
	}
	m.pending = append(m.pending, e)
}

// publish says how far all caches have come. While a cache that is being read
// is compared with a new list, it has not come as far as the stream.
func (f *Feed) publish() {
	for _, m := range f.order {
		if m.filling && m.cache.isReady() {
			return
		}
	}
	f.progress.Publish(f.position)
}

// FeedStats is a feed's counters at one moment.
type FeedStats struct {
	Revision    storage.Revision // reached by all caches
	Resumes     int64            // streams that broke and went on where they were
	Relists     int64            // lists of a cache, the first fills included
	Checks      int64            // comparisons of a cache with the store
	Differences int64            // that those found
	Undecodable int64            // values left out
	Unrouted    int64            // changes of keys that no cache holds
	Fills       []FillStats      // of the caches that are being filled
}

// FillStats is how far one fill has come.
type FillStats struct {
	Resource string
	Objects  int64 // loaded so far
}

// Stats returns the counters.
func (f *Feed) Stats() FeedStats {
	s := FeedStats{
		Revision:    f.progress.Reached(),
		Resumes:     f.resumes.Load(),
		Relists:     f.relists.Load(),
		Checks:      f.checks.Load(),
		Differences: f.differences.Load(),
		Undecodable: f.undecodable.Load(),
		Unrouted:    f.unrouted.Load(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.order {
		if m.filling {
			s.Fills = append(s.Fills, FillStats{m.cache.res.GroupResource().String(), m.loaded.Load()})
		}
	}
	return s
}
