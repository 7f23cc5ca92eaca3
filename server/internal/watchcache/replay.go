package watchcache

import (
	"context"
	"errors"

	"github.com/levelwire/levelwire/storage"
)

// What a cache's log holds grows while the server runs. What was written
// before that is in the store's own history, until it is compacted: it is
// replayed once after a start, behind the caches' back, so that a client resumes
// from any revision that the store still has, whichever server it comes from.
// Readiness does not wait for it; only who needs it does, see Cache.Resume. Kinds
// that are defined by objects come when those have been read, and all of them
// together have history read once more. Holding on to what the first replay told
// would take memory for as long as nobody knows whether such kinds will come, for
// less than a third of the work: the rest is the decoding of what belongs to them.

// replayer puts the past in front of caches that have been filled, when all
// that wait for their first state have it.
func (f *Feed) replayer(ctx context.Context) error {
	for {
		select {
		case <-f.filled:
		case <-ctx.Done():
			return nil
		}
		if wanting := f.wantingPast(); len(wanting) > 0 {
			f.replay(ctx, wanting)
		}
	}
}

// wantPast asks for a member's past, which has just been filled anew. The
// feed's lock is held.
func (f *Feed) wantPast(m *member) {
	if f.opts.ReplayRevisions > 0 {
		m.wantsPast = true
		m.cache.expectPast()
	}
	f.askForPast()
}

// askForPast wakes the replayer.
func (f *Feed) askForPast() {
	select {
	case f.filled <- struct{}{}:
	default:
	}
}

// wantingPast takes the members whose past is wanted; none as long as others
// wait for their present.
func (f *Feed) wantingPast() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wanting []*member
	for _, m := range f.order {
		switch {
		case m.filling:
			return nil // when it has been filled, it wants its past, too
		case m.wantsPast:
			wanting = append(wanting, m)
		}
	}
	for _, m := range wanting {
		m.wantsPast = false
	}
	return wanting
}

// replayAttempts is how often a replay is tried that a compaction overtakes, or
// a store that is not at its best: for some seconds.
const replayAttempts = 8

// replay reads the store's history up to the fills of the members and hands it
// to their caches. If that fails they have none, as if it had been compacted.
func (f *Feed) replay(ctx context.Context, members []*member) {
	defer func() {
		for _, m := range members {
			m.cache.forgo()
		}
	}()
	delay := retryFirst
	for attempt := 1; ; attempt++ {
		err := f.replayOnce(ctx, members)
		if err == nil || ctx.Err() != nil {
			return
		}
		if attempt == replayAttempts || errors.Is(err, storage.ErrClosed) {
			f.opts.Logger.Warn("the store's history could not be read: watches resume only from revisions since the start", "error", err)
			return
		}
		if sleep(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, retryLast)
	}
}

// replayOnce does it from the oldest revision that the store has.
func (f *Feed) replayOnce(ctx context.Context, members []*member) error {
	oldest, err := f.store.Oldest(ctx)
	if err != nil {
		return err
	}
	through := storage.Revision(0)
	collected := make(map[string]*recollection, len(members))
	for _, m := range members {
		r := m.cache.newRecollection(m.prefix)
		collected[m.prefix] = r
		through = max(through, r.through)
	}
	from := max(oldest, through-storage.Revision(f.opts.ReplayRevisions))
	prefix := f.opts.Prefix
	if len(members) == 1 {
		prefix = members[0].prefix
	}
	old, err := f.remember(ctx, members, from)
	if err != nil {
		return err
	}
	err = f.store.Replay(ctx, prefix, from, through, func(events []storage.Event) error {
		for i := range events {
			if r := collected[f.owner(events[i].Key)]; r != nil {
				r.note(&events[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range members {
		p, err := collected[m.prefix].recollect(ctx, f.store, from)
		if err != nil {
			return err
		}
		delete(collected, m.prefix) // one at a time is held in both forms
		m.cache.recall(p.behind(old, old.by[m.prefix], from))
	}
	return nil
}

// owner returns the prefix of the cache that a key belongs to.
func (f *Feed) owner(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.route(key); m != nil {
		return m.prefix
	}
	return ""
}
