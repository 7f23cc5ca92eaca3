package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// errSummary reports that coalesced history has to be read first.
var errSummary = errors.New("coalesced history comes first")

// errBackfilling reports that the history that a watch needs is being read from
// the store.
var errBackfilling = errors.New("history is being read")

// Watch starts a watcher. One that starts before the log reads coalesced history
// first; see Watcher.readSummary. Watch fails with ErrNotReady before the first
// fill, with an *ExpiredError if coalesced history does not reach back far enough
// either, and with ErrClosed. The caller must Close the watcher.
func (c *Cache) Watch(opts WatchOptions) (*Watcher, error) { return c.watch(opts, false) }

// Resume is Watch for a client that had a watch before: while earlier history is
// being read from the store, it waits, at most Options.FreshnessWait, and then
// fails with ErrNotReady instead of an *ExpiredError. If ctx ends first it fails
// with ctx's error.
func (c *Cache) Resume(ctx context.Context, opts WatchOptions) (*Watcher, error) {
	w, err := c.watch(opts, true)
	if !errors.Is(err, errBackfilling) {
		return w, err
	}
	c.mu.Lock()
	backfilling := c.backfilling
	c.mu.Unlock()
	if backfilling != nil {
		timer := time.NewTimer(c.opts.FreshnessWait)
		defer timer.Stop()
		select {
		case <-backfilling:
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if w, err = c.watch(opts, true); errors.Is(err, errBackfilling) {
		return nil, ErrNotReady
	}
	return w, err
}

func (c *Cache) watch(opts WatchOptions, wait bool) (*Watcher, error) {
	w := &Watcher{
		cache:     c,
		selection: opts.Selection,
		waker:     opts.Waker,
		after:     opts.After,
		reached:   opts.After,
		handed:    opts.After,
		initial:   opts.Initial,
		endAtGaps: opts.EndAtGaps,
		gapsBegun: c.gapsBegun.Load(),
	}
	if opts.Selection.Everything() {
		w.selection = nil
	}
	if w.initial != nil {
		w.after, w.reached, w.handed, w.own = w.initial.Revision(), 0, 0, true
	}
	if w.inGap() {
		c.counters.expiredOld.Add(1)
		return nil, c.expired(w.after)
	}
	exact, err := c.attachToLog(w, wait)
	if err == nil && !exact {
		err = c.attachToSummary(w)
	}
	if err != nil {
		return nil, err
	}
	w.beginTold(opts.After)
	switch {
	case w.initial != nil:
		w.began = BeganInitial
		c.counters.begunInitial.Add(1)
	case exact:
		w.began = BeganExact
		c.counters.resumedExact.Add(1)
	default:
		w.began = BeganCoalesced
		c.counters.resumedCoalesced.Add(1)
	}
	return w, nil
}

// attachToLog attaches the watcher if the log goes back far enough.
func (c *Cache) attachToLog(w *Watcher, wait bool) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed.Load():
		return false, ErrClosed
	case !c.filled:
		return false, ErrNotReady
	}
	if w.initial == nil {
		w.after = c.resumeAfter(w.after)
		w.reached = w.after
		w.future = w.after > c.state.Load().revision
	}
	switch {
	case w.after >= storage.Revision(c.baseRevision.Load()):
		c.attach(w)
		return true, nil
	case wait && c.backfilling != nil:
		return false, errBackfilling
	}
	return false, nil
}

// summaryAttempts is how often a summary is made if the log has evicted what
// follows it before a cursor was set.
const summaryAttempts = 3

// attachToSummary attaches the watcher to the log behind a summary, which it
// reads first.
func (c *Cache) attachToSummary(w *Watcher) error {
	c.mu.Lock()
	from := w.summaryFrom()
	c.mu.Unlock()
	for range summaryAttempts {
		s := c.summarizeUnlessExact(from)
		if s == nil {
			break
		}
		c.mu.Lock()
		if s.generation == c.generation.Load() && s.position >= c.log.Oldest() {
			w.beginSummary(s, from)
			c.attach(w)
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
	}
	c.counters.expiredOld.Add(1)
	return c.expired(w.after)
}

// expired makes the error for a revision before all history.
func (c *Cache) expired(requested storage.Revision) error {
	return &ExpiredError{Requested: requested, Oldest: c.Oldest()}
}

func (c *Cache) summarizeUnlessExact(after storage.Revision) *summary {
	if c.opts.ExactHistory {
		return nil
	}
	return c.summarize(after)
}

// Oldest returns the smallest revision after which a watch can begin, in exact or in
// coalesced history.
func (c *Cache) Oldest() storage.Revision {
	oldest := storage.Revision(c.baseRevision.Load())
	if c.opts.ExactHistory {
		return oldest
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(oldest, c.tombstones.Since())
}
