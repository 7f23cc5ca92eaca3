package rbac

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// History knows what the roles and bindings allowed at each recent revision. It merges the
// events of the four caches in the order of their revisions, which the Index, whose
// decisions are about the present, does not. It reads nothing before the first View is
// opened, and is safe for concurrent use.
//
// It has applied a revision (Reached) when all four caches have: no role or binding can
// change at that revision or before it any more.
type History struct {
	sources  []*historySource
	prepared *preparer // locked after mu
	log      *slog.Logger
	wake     chan struct{} // of length 1; receives when Run has to look
	opened   atomic.Bool

	// reached is stored while mu is held, but for raise: where nothing has changed, a read of
	// the history takes no lock. It is a pointer so that a raise which began before the
	// history was read anew fails, also if the revision is the same again.
	reached atomic.Pointer[storage.Revision]

	// mu guards the fields below, and the watchers of the sources. The locks of the caches
	// are taken while it is held.
	mu      sync.Mutex
	policy  *policy          // at reached
	changes []change         // after since, ascending
	since   storage.Revision // changes holds every change after this
	bytes   int              // of the definitions in changes
	trimmed bool             // older changes were dropped because there were too many
	behind  bool             // policy is that of since, not that of reached: it has been read anew
	rereads int              // how often policy was read anew
	views   *viewIndex
	shared  map[string]*View                      // the latest view of each key
	idle    []*View                               // not in use; the one that was used last comes last
	waiting map[watchcache.Waker]storage.Revision // each is woken when its revision has been applied

	maxBytes int // maxChangeBytes, but in tests
}

// historySource is one of the four kinds.
type historySource struct {
	registry registry.Registry
	cache    *watchcache.Cache
	binding  bool
	applied  atomic.Int64 // revision of the cache's state that the History has; -1: not all of it

	watcher  *watchcache.Watcher
	refilled storage.Revision   // RefilledAt when the watcher was opened
	pending  []watchcache.Event // read, and later than what all caches have
}

const (
	// A History keeps this many changes, and this many bytes of what they say: a resume from
	// before them gets a 410.
	maxChanges     = 8192
	maxChangeBytes = 32 << 20
	// maxIdleViews is how many views are kept that are not in use: the next list or
	// watch of the same user need not look for its bindings.
	maxIdleViews = 64
)

// errLost reports that the changes of a cache cannot be had one by one any more.
var errLost = errors.New("the history of roles or bindings is interrupted")

// NewHistory returns a History of the same kinds, which shares what their writes prepare for the Index.
func (x *Index) NewHistory() *History {
	h := &History{
		log: x.log, prepared: x.prepared, wake: make(chan struct{}, 1), maxBytes: maxChangeBytes,
		views: newViewIndex(), shared: map[string]*View{}, waiting: map[watchcache.Waker]storage.Revision{},
	}
	h.reached.Store(new(storage.Revision))
	for _, s := range x.sources {
		h.sources = append(h.sources, &historySource{registry: s.registry, cache: s.registry.Cache(), binding: s.binding})
	}
	return h
}

// Run applies changes as they come, and wakes what waits for them, until ctx ends.
func (h *History) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-h.wake:
		case <-ctx.Done():
			return
		}
		for h.opened.Load() && ctx.Err() == nil {
			more, err := h.serve(ctx)
			if err != nil && ctx.Err() == nil {
				h.log.Warn("filtered watches do not go on: roles and bindings cannot be read", "error", err)
				pause(ctx, retryAfter)
			} else if !more {
				break
			}
			h.awaitProgress(ctx)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Wake implements watchcache.Waker: a cache has events.
func (h *History) Wake() watchcache.Starter {
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return nil
}

// serve applies what there is, and reports whether something waits for later revisions.
func (h *History) serve(ctx context.Context) (more bool, err error) {
	h.mu.Lock()
	wake, err := h.advance(ctx)
	reached := *h.reached.Load()
	for waker, revision := range h.waiting {
		if revision <= reached {
			wake = append(wake, waker)
			delete(h.waiting, waker)
		}
	}
	more = len(h.waiting) > 0
	for _, s := range h.sources {
		more = more || len(s.pending) > 0
	}
	h.mu.Unlock()
	wakeAll(wake)
	return more, err
}

func wakeAll(wakers []watchcache.Waker) {
	for _, w := range wakers {
		if starter := w.Wake(); starter != nil {
			starter.Start()
		}
	}
}

// awaitProgress waits until every cache may be further than the history. It gives up after a
// few seconds.
func (h *History) awaitProgress(ctx context.Context) {
	next := *h.reached.Load() + 1
	ctx, cancel := context.WithTimeout(ctx, retryAfter)
	defer cancel()
	for _, s := range h.sources {
		if _, err := s.cache.NotOlderThan(ctx, next); err != nil {
			return
		}
	}
}

// Reached returns the revision up to which every change of roles and bindings has been
// applied.
func (h *History) Reached() storage.Revision {
	if !h.opened.Load() {
		return 0
	}
	reached, _ := h.reach() // Run reports the error
	return reached
}

// reach applies what all caches have reached, and returns the revision up to which every
// change has been applied, also if it fails.
func (h *History) reach() (storage.Revision, error) {
	for {
		// The order matters: if the history is read anew after the bound was found, raise fails.
		before := h.reached.Load()
		bound, unchanged := h.unchangedThrough()
		if !unchanged {
			break
		}
		if h.raise(before, bound) {
			return max(*before, bound), nil
		}
	}
	h.mu.Lock()
	wake, err := h.advance(context.Background())
	h.mu.Unlock()
	wakeAll(wake)
	return *h.reached.Load(), err
}

// unchangedThrough returns a revision that the caches have reached, and whether nothing has
// changed up to it that has not been applied.
func (h *History) unchangedThrough() (storage.Revision, bool) {
	// The order matters: a state that is loaded after the progress includes every change up
	// to the progress.
	bound := h.bound()
	for _, s := range h.sources {
		if s.applied.Load() != int64(s.cache.StateRevision()) {
			return 0, false
		}
	}
	return bound, true
}

func (h *History) bound() storage.Revision {
	bound := storage.Revision(math.MaxInt64)
	for _, s := range h.sources {
		bound = min(bound, s.cache.Reached())
	}
	return bound
}

// raise raises reached to a revision, unless it has been stored since it was before.
func (h *History) raise(before *storage.Revision, revision storage.Revision) bool {
	return revision <= *before || h.reached.CompareAndSwap(before, &revision)
}

// Wait blocks until a revision has been applied. It fails with ctx's error, with
// auth.ErrNotReady while the caches are filled for the first time, if a cache does not reach
// the revision in time, or if the changes of a cache cannot be read although it has.
func (h *History) Wait(ctx context.Context, revision storage.Revision) error {
	if err := h.open(ctx); err != nil {
		return err
	}
	for h.Reached() < revision {
		for _, s := range h.sources {
			if _, err := s.cache.NotOlderThan(ctx, revision); err != nil {
				return err
			}
		}
		if reached, err := h.reach(); reached < revision && (err != nil || ctx.Err() != nil) {
			return cmp.Or(ctx.Err(), err)
		}
	}
	return nil
}

// open reads the caches for the first time.
func (h *History) open(ctx context.Context) error {
	if h.opened.Load() {
		return nil
	}
	if err := h.ready(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened.Load() {
		return nil
	}
	if err := h.restart(ctx); err != nil {
		return err
	}
	_, err := h.advance(ctx)
	if err == nil {
		h.prepared.follow(historyReader)
		h.opened.Store(true)
	}
	return err
}

// ready waits until all caches can tell a common revision.
func (h *History) ready(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for _, s := range h.sources {
		if err := s.cache.WaitReady(wait); err != nil {
			return errors.Join(auth.ErrNotReady, ctx.Err())
		}
	}
	for _, s := range h.sources {
		if _, err := s.cache.NotOlderThan(wait, h.exactSince()); err != nil {
			return err
		}
	}
	return nil
}

// exactSince returns the earliest revision since when all caches know all states.
func (h *History) exactSince() (revision storage.Revision) {
	for _, s := range h.sources {
		revision = max(revision, s.cache.ExactSince())
	}
	return revision
}

// restart reads the caches anew, from the earliest revision that they know. The history is
// at that revision then, and advance has to follow. mu is held.
func (h *History) restart(ctx context.Context) error {
	since, p := h.exactSince(), newPolicy(h.prepared.room)
	for _, s := range h.sources {
		if s.watcher != nil {
			s.watcher.Close()
		}
		s.watcher, s.pending, s.refilled = nil, nil, s.cache.RefilledAt()
		s.applied.Store(-1)
		snapshot, err := s.cache.Exact(ctx, since)
		if err != nil {
			return err
		}
		if s.watcher, err = s.cache.Watch(watchcache.WatchOptions{After: since, Waker: h}); err != nil {
			return err
		}
		for o := range snapshot.Range("", "") {
			if d, err := h.prepared.define(ctx, historyReader, s.registry, o); err == nil { // what cannot be read allows nothing
				p.set(s.binding, cloneKey(keyOfObject(o)), d)
			}
		}
	}
	h.policy, h.since, h.changes, h.bytes, h.trimmed = p, since, nil, 0, false
	h.behind = true
	h.rereads++
	return nil
}

func cloneKey(key objectKey) objectKey {
	return objectKey{strings.Clone(key.namespace), strings.Clone(key.name)} // which share an object's JSON
}

// advance applies what all caches have reached, and returns what is to be woken once mu is
// not held any more. mu is held.
func (h *History) advance(ctx context.Context) (wake []watchcache.Waker, err error) {
	for attempt := 0; ; attempt++ {
		wake, err = h.apply(ctx, wake)
		if err == nil {
			return wake, nil
		}
		lost := errors.Is(err, errLost)
		if lost || h.behind {
			wake = append(wake, h.expireViews()...)
		}
		if !lost || attempt == 2 {
			return wake, err
		}
		if err := h.restart(ctx); err != nil {
			return wake, err
		}
		h.startAtSince() // it may have gone back, with the store
	}
}

// expireViews ends all views, because the changes that follow cannot be applied to them, and
// makes reached the revision of the policy. It returns what is to be woken. mu is held.
func (h *History) expireViews() (wake []watchcache.Waker) {
	for v := range h.views.all {
		wake = append(wake, v.expire()...)
	}
	h.views.clear()
	clear(h.shared)
	h.idle = nil
	if h.behind {
		h.startAtSince()
	}
	return wake
}

// startAtSince makes reached the revision that the history begins with. mu is held.
func (h *History) startAtSince() {
	since := h.since
	h.reached.Store(&since)
}

func (h *History) apply(ctx context.Context, wake []watchcache.Waker) ([]watchcache.Waker, error) {
	bound := h.bound()
	var states [4]storage.Revision
	for i, s := range h.sources {
		states[i] = s.cache.StateRevision() // before its events are read: what led to it is in the log
		if err := s.read(); err != nil {
			return wake, err
		}
	}
	reached := *h.reached.Load()
	for {
		revision := h.nextRevision()
		if revision > bound {
			break
		}
		first := len(h.changes)
		for _, s := range h.sources {
			h.applySource(ctx, s, revision)
		}
		if revision > reached { // otherwise the views have it
			wake = append(wake, h.applyToViews(revision, h.changes[first:])...)
		}
		if len(h.changes) > 2*maxChanges || h.bytes > 2*h.maxBytes { // seldom: trim copies what it keeps
			h.trim()
		}
	}
	h.trim()
	h.behind = false
	for before := h.reached.Load(); !h.raise(before, bound); before = h.reached.Load() { // reach raises it, too
	}
	for i, s := range h.sources {
		if len(s.pending) > 0 {
			states[i] = -1
		}
		s.applied.Store(int64(states[i]))
	}
	return wake, nil
}

// read moves the events that there are to pending.
func (s *historySource) read() error {
	if s.watcher == nil {
		return errLost
	}
	var events [eventBatch]watchcache.Event
	for {
		n, err := s.watcher.Read(events[:])
		if errors.Is(err, watchcache.ErrExpired) || s.watcher.CoalescedThrough() > 0 || s.cache.RefilledAt() > s.refilled {
			return errLost
		}
		if err != nil || n == 0 {
			return err
		}
		s.pending = append(s.pending, events[:n]...)
	}
}

// nextRevision returns the revision of the first event that has not been applied.
func (h *History) nextRevision() storage.Revision {
	next := storage.Revision(math.MaxInt64)
	for _, s := range h.sources {
		if len(s.pending) > 0 {
			next = min(next, s.pending[0].Revision)
		}
	}
	return next
}

// applySource applies a source's events of one revision to the policy.
func (h *History) applySource(ctx context.Context, s *historySource, revision storage.Revision) {
	for len(s.pending) > 0 && s.pending[0].Revision == revision {
		event := s.pending[0]
		s.pending[0] = watchcache.Event{}
		s.pending = s.pending[1:]
		c := change{revision: revision, binding: s.binding, key: cloneKey(keyOfObject(event.Object))}
		c.before = h.policy.find(c.binding, c.key).uncompiled()
		var after *definition
		if event.Type != watchcache.Deleted {
			if d, err := h.prepared.define(ctx, historyReader, s.registry, event.Object); err == nil { // the Index has reported it otherwise
				after = d
			}
		}
		h.policy.set(c.binding, c.key, after)
		c.after = after.uncompiled()
		h.changes = append(h.changes, c)
		h.bytes += c.bytes()
	}
}

// applyToViews applies the changes of one revision, which the policy has, to the views that they
// concern. It returns what is to be woken.
func (h *History) applyToViews(revision storage.Revision, changes []change) (wake []watchcache.Waker) {
	for v, part := range h.views.concernedBy(changes, h.policy) {
		if v.apply(revision, part, h.roleNow) {
			wake = append(wake, v.wakers()...)
		}
	}
	return wake
}

// roleNow returns what a role says at the revision that is being applied.
func (h *History) roleNow(key objectKey) *definition { return h.policy.find(false, key) }

// trim drops the oldest changes if there are too many, or too many bytes of them; those of
// one revision stay together. What it keeps is copied, because views that are being made read
// the former slice.
func (h *History) trim() {
	drop := max(0, len(h.changes)-maxChanges)
	for i := range drop {
		h.bytes -= h.changes[i].bytes()
	}
	for ; h.bytes > h.maxBytes; drop++ {
		h.bytes -= h.changes[drop].bytes()
	}
	if drop == 0 {
		return
	}
	h.since, h.trimmed = h.changes[drop-1].revision, true
	for ; drop < len(h.changes) && h.changes[drop].revision == h.since; drop++ {
		h.bytes -= h.changes[drop].bytes()
	}
	h.changes = slices.Clone(h.changes[drop:])
}

// reachBack makes the history begin at a revision or before it, if the caches know so much
// by now: after a start, they read earlier history from the store. It waits for that.
func (h *History) reachBack(ctx context.Context, revision storage.Revision) error {
	h.mu.Lock()
	enough, hopeless := revision >= h.since, h.trimmed
	h.mu.Unlock()
	if enough || hopeless {
		return nil
	}
	for _, s := range h.sources {
		w, err := s.cache.Resume(ctx, watchcache.WatchOptions{After: revision})
		if errors.Is(err, watchcache.ErrExpired) {
			return nil
		}
		if err != nil {
			return err
		}
		w.Close()
	}
	if h.exactSince() > revision {
		return nil
	}
	h.mu.Lock()
	if revision >= h.since {
		h.mu.Unlock()
		return nil
	}
	err := h.restart(ctx)
	wake, advanced := h.advance(ctx)
	h.mu.Unlock()
	wakeAll(wake)
	return errors.Join(err, advanced)
}

// await has waker woken when a revision has been applied.
func (h *History) await(revision storage.Revision, waker watchcache.Waker) {
	h.mu.Lock()
	if before, waits := h.waiting[waker]; !waits || revision < before {
		h.waiting[waker] = revision
	}
	h.mu.Unlock()
	h.Wake()
}

// forget has waker woken no more.
func (h *History) forget(waker watchcache.Waker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, waker)
}
