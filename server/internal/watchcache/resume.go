package watchcache

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// errSummary: there is coalesced history to be read first.
var errSummary = errors.New("coalesced history comes first")

// errRecalling: the past that is asked for is being read from the store.
var errRecalling = errors.New("history is being read")

// Watch starts a watcher. If it is to start before the log, it is told the
// coalesced history in between first; see Watcher.readSummary. It fails with
// ErrNotReady before the first fill, with an *ExpiredError if not even that
// reaches back so far, and with ErrClosed. The caller must Close the watcher.
func (c *Cache) Watch(opts WatchOptions) (*Watcher, error) { return c.watch(opts, false) }

// Resume is Watch for those who come back: while the past is being read from
// the store, it waits for it, at most Options.FreshnessWait, and then fails with
// ErrNotReady rather than say that it is gone. If ctx ends first it fails with
// ctx's error.
func (c *Cache) Resume(ctx context.Context, opts WatchOptions) (*Watcher, error) {
	w, err := c.watch(opts, true)
	if !errors.Is(err, errRecalling) {
		return w, err
	}
	c.mu.Lock()
	recalling := c.recalling
	c.mu.Unlock()
	if recalling != nil {
		timer := time.NewTimer(c.opts.FreshnessWait)
		defer timer.Stop()
		select {
		case <-recalling:
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if w, err = c.watch(opts, true); errors.Is(err, errRecalling) {
		return nil, ErrNotReady
	}
	return w, err
}

func (c *Cache) watch(opts WatchOptions, patient bool) (*Watcher, error) {
	w := &Watcher{
		cache:     c,
		selection: opts.Selection,
		waker:     opts.Waker,
		after:     opts.After,
		reached:   opts.After,
		initial:   opts.Initial,
	}
	if opts.Selection.Everything() {
		w.selection = nil
	}
	if w.initial != nil {
		w.after, w.reached = w.initial.revision, 0
	}
	exact, err := c.attachToLog(w, patient)
	if err == nil && !exact {
		err = c.attachToSummary(w)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case w.initial != nil:
		c.counters.begunInitial.Add(1)
	case exact:
		c.counters.resumedExact.Add(1)
	default:
		c.counters.resumedCoalesced.Add(1)
	}
	return w, nil
}

// attachToLog attaches the watcher if the log goes back far enough.
func (c *Cache) attachToLog(w *Watcher, patient bool) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed.Load():
		return false, ErrClosed
	case !c.filled:
		return false, ErrNotReady
	}
	if w.initial == nil {
		w.after = c.shared.after(w.after)
		w.reached = w.after
	}
	switch {
	case w.after >= storage.Revision(c.base.Load()):
		c.attach(w)
		return true, nil
	case patient && c.recalling != nil:
		return false, errRecalling
	}
	return false, nil
}

// summaryAttempts is how often a summary is made that the log has left behind
// before a cursor is on it.
const summaryAttempts = 3

// attachToSummary attaches the watcher to the log behind a summary, which it is
// told first.
func (c *Cache) attachToSummary(w *Watcher) error {
	for range summaryAttempts {
		s := c.summarizeUnlessExact(w.after)
		if s == nil {
			break
		}
		c.mu.Lock()
		if s.generation == c.generation.Load() && s.position >= c.log.oldest.Load() {
			w.summarized(s)
			c.attach(w)
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
	}
	c.counters.expiredOld.Add(1)
	return c.expired(w.after)
}

// expired is the refusal of a revision that no history reaches back to.
func (c *Cache) expired(requested storage.Revision) error {
	oldest := storage.Revision(c.base.Load())
	if !c.opts.ExactHistory {
		c.mu.Lock()
		oldest = min(oldest, c.graves.since)
		c.mu.Unlock()
	}
	return &ExpiredError{Requested: requested, Oldest: oldest}
}

func (c *Cache) summarizeUnlessExact(after storage.Revision) *summary {
	if c.opts.ExactHistory {
		return nil
	}
	return c.summarize(after)
}

// summarized makes the watcher tell the summary before it goes on in the log.
func (w *Watcher) summarized(s *summary) {
	w.since = max(w.reached, w.after) // the latter until the initial snapshot has been told
	w.summary, w.cursor = s, s.after(w.since)
	w.sweeping = w.selection.changes()
	w.after = s.revision
}

// changes reports whether an object can enter or leave the selection while it
// lives: by its labels or fields, which change, and not by its name.
func (s *Selection) changes() bool { return s != nil && len(s.fields)+len(s.labels) > 0 }

// resumeFromSummary makes a watcher that was so slow that the log has moved past it go on
// from the coalesced history. It is false if there is none.
func (w *Watcher) resumeFromSummary() bool {
	c := w.cache
	for range summaryAttempts {
		s := c.summarizeUnlessExact(w.reached)
		if s == nil {
			return false
		}
		c.mu.Lock()
		if s.generation != c.generation.Load() || s.position < c.log.oldest.Load() {
			c.mu.Unlock()
			continue
		}
		w.summarized(s)
		c.seek(w)
		c.mu.Unlock()
		c.counters.continued.Add(1)
		return true
	}
	return false
}

// readSummary delivers the next part of the coalesced history: what has changed
// since the revision that the client has.
//
// In the main part each object that is selected comes once, as it is now, and
// each one that was deleted while it was selected, all in the order of their
// revisions. It is an Added if the object was created since.
//
// A selection by labels or fields needs another part before it. An object that
// is not selected now may have been when the client last looked, and is then
// Deleted: unless its labels and fields have been the same since, or it has been
// created since. These events carry the revision that the client has already. If
// they came in their place in the order, a client that is cut off before one of
// them, and then finds exact history from where it is, would never be told:
// there the object merely goes from one state that is not selected to another.
// With them in front, whatever the client is not told later by exact history it
// has been told before, so that it may go on from any event, on any server.
func (w *Watcher) readSummary(buf []Event) int {
	n := 0
	for changes := w.summary.changes; n < len(buf); w.cursor++ {
		if w.cursor == len(changes) {
			if w.sweeping {
				w.sweeping, w.cursor = false, w.summary.after(w.since)-1
				continue
			}
			w.reached = max(w.reached, w.summary.revision)
			w.summary = nil
			return n
		}
		change := &changes[w.cursor]
		kind := w.sees(change)
		switch {
		case kind == 0:
			continue
		case w.sweeping:
			buf[n] = Event{Type: Deleted, Object: change.state().at(w.since), Revision: w.since}
		case kind == Deleted:
			buf[n] = Event{Type: Deleted, Object: change.deletion.last(w.cache.account.Load()), Revision: change.deletion.through}
		default:
			buf[n] = Event{Type: kind, Object: change.object, Revision: change.revision}
		}
		if !w.sweeping {
			w.reached = max(w.reached, w.complete(w.cursor))
		}
		n++
	}
	return n
}

// complete returns the revision up to which everything has been told when the
// change has been.
func (w *Watcher) complete(cursor int) storage.Revision {
	changes := w.summary.changes
	revision := changes[cursor].revision
	if cursor+1 < len(changes) && changes[cursor+1].revision == revision {
		return revision - 1
	}
	return revision
}

// sees returns what the watcher sees of a change in the part that it is in.
func (w *Watcher) sees(l *lastChange) EventType {
	o := l.state()
	isNew := o.created > w.since
	switch matches := w.selection.Matches(o); {
	case w.sweeping && (matches || isNew || !w.selection.mayHaveMatched(o, w.since)):
		return 0
	case w.sweeping:
		return Deleted
	case !matches, isNew && l.object == nil:
		return 0
	case l.object == nil:
		return Deleted
	case isNew:
		return Added
	}
	return Modified
}

// mayHaveMatched reports whether an object that does not match, but existed at a
// revision, may have matched then. That a bound pod has never been on another
// node spares each kubelet the changed pods of all others.
func (s *Selection) mayHaveMatched(o *Object, at storage.Revision) bool {
	if o.steadySince(s) <= at || !s.matchesIdentity(&o.Attributes) {
		return false
	}
	for i := range s.fields {
		if c := &s.fields[i]; c.never && !c.holds(fieldOf(s.stored, o, c.index)) {
			return false
		}
	}
	return true
}

// steadySince returns a revision since when what the selection looks at is as
// it is in o. Fields that became selectable later than o are not compared when
// objects enter the cache. A residue lacks those that became selectable later than
// it was made, and cannot tell: only custom resources have such fields.
func (o *Object) steadySince(s *Selection) storage.Revision {
	for i := range s.fields {
		switch index := s.fields[i].index; {
		case o.residue && s.stored.Mixed && fieldOf(s.stored, o, index) == "":
			return math.MaxInt64
		case index >= len(o.Attributes.Fields):
			return o.Written()
		}
	}
	if o.steady == 0 {
		return o.Written()
	}
	return o.steady
}

// reachedInSummary is Reached while a summary is told.
func (w *Watcher) reachedInSummary() storage.Revision {
	if w.sweeping {
		return w.reached
	}
	changes := w.summary.changes
	for ; w.cursor < len(changes); w.cursor++ {
		if w.sees(&changes[w.cursor]) != 0 {
			w.reached = max(w.reached, changes[w.cursor].revision-1)
			return w.reached
		}
	}
	w.reached = max(w.reached, w.summary.revision)
	return w.reached
}
