package feed

import (
	"context"
	"errors"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache/backfill"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// A cache's log grows while the server runs. Earlier changes are in the store's
// own history, until it is compacted: the feed replays that once after a start, so
// that a client resumes from any revision that the store still has, whichever
// server it had its watch from. Readiness does not wait for that; only a watch that
// needs it does, see Cache.Resume. Custom kinds are added when their definitions
// have been read, and history is then replayed once more for all of them together:
// keeping the events of the first replay would take memory for as long as it is
// unknown whether custom kinds will come, and save less than a third of the work,
// because the rest is decoding their objects.

// runBackfills prepends earlier history to caches that have been filled, once no
// other cache waits for its first fill.
func (f *Feed) runBackfills(ctx context.Context) error {
	for {
		select {
		case <-f.backfill:
		case <-ctx.Done():
			return nil
		}
		if members := f.takeForBackfill(); len(members) > 0 {
			f.backfillMembers(ctx, members)
		}
	}
}

// needBackfill marks a member that has just been filled anew. The lock is held.
func (f *Feed) needBackfill(m *member) {
	if f.opts.ReplayRevisions > 0 {
		m.needsBackfill = true
		m.cache.ExpectHistory()
	}
	f.requestBackfill()
}

// requestBackfill wakes runBackfills.
func (f *Feed) requestBackfill() {
	select {
	case f.backfill <- struct{}{}:
	default:
	}
}

// takeForBackfill returns the members that need a backfill, and unmarks them; none
// while any member is being filled.
func (f *Feed) takeForBackfill() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	var members []*member
	for _, m := range f.order {
		switch {
		case m.filling:
			return nil // when it has been filled, it needs a backfill, too
		case m.needsBackfill:
			members = append(members, m)
		}
	}
	for _, m := range members {
		m.needsBackfill = false
	}
	return members
}

// replayAttempts is how often a replay is tried if a compaction overtakes it or
// the store fails: for some seconds.
const replayAttempts = 8

// backfillMembers reads the store's history up to the members' fills and prepends
// it to their logs. If that fails they get none, as if the store had been
// compacted.
func (f *Feed) backfillMembers(ctx context.Context, members []*member) {
	defer func() {
		for _, m := range members {
			m.cache.SkipBackfill()
		}
	}()
	delay := retryFirst
	for attempt := 1; ; attempt++ {
		err := f.replay(ctx, members)
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

// replay makes one attempt, from the oldest revision that the store has.
func (f *Feed) replay(ctx context.Context, members []*member) error {
	oldest, err := f.store.Oldest(ctx)
	if err != nil {
		return err
	}
	through := storage.Revision(0)
	collectors := make(map[*member]*backfill.Collector, len(members))
	for _, m := range members {
		c := m.cache.NewCollector()
		collectors[m] = c
		through = max(through, c.Through())
	}
	from := max(oldest, through-storage.Revision(f.opts.ReplayRevisions))
	prefix := f.opts.Prefix
	if len(members) == 1 {
		prefix = members[0].prefix
	}
	stored, err := f.storedTombstones(ctx, collectors, from)
	if err != nil {
		return err
	}
	err = f.store.Replay(ctx, prefix, from, through, func(events []storage.Event) error {
		for i := range events {
			if c := collectors[f.owner(events[i].Key)]; c != nil {
				c.Add(&events[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range members {
		h, err := collectors[m].Finish(ctx, f.store, from)
		if err != nil {
			return err
		}
		delete(collectors, m) // one collector at a time is held in both forms
		m.cache.PrependHistory(h.WithStored(stored.Of[m.cache.Resource()], stored.Since, from))
	}
	return nil
}

// storedTombstones reads the members' tombstones up to a revision from the store.
func (f *Feed) storedTombstones(ctx context.Context, members map[*member]*backfill.Collector, from storage.Revision) (tombstone.Stored, error) {
	reader := tombstone.Reader{Now: f.opts.Now, Logger: f.opts.Logger, ResourceOf: func(key string) *resource.Resource {
		if m := f.owner(key); members[m] != nil {
			return m.cache.Resource()
		}
		return nil
	}}
	return reader.Read(ctx, f.store, from)
}

// owner returns the member that a key belongs to, or nil.
func (f *Feed) owner(key string) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.route(key)
}
