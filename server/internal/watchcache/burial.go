package watchcache

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// Deletions are derived from the store's history as long as it has them, by each
// server for itself. Whoever compacts the store first writes down those that the
// compaction will forget, under a prefix of their own: so they are kept across
// restarts and compactions, every server of the store finds the same, and
// ordinary writes cost nothing. Each batch says which revisions it covers. Where
// somebody else has compacted without writing them down there is a gap, and only
// what is behind the last gap counts.

// TombstonePrefix is the prefix of the keys under which batches of deletions are
// kept, in the order of their revisions.
const TombstonePrefix = "/levelwire/tombstones/"

// Grounds is the store as BeforeCompaction needs it.
type Grounds interface {
	Source
	storage.Writer
}

// BeforeCompaction writes down the deletions that compacting the store to a
// revision will forget. It is false if nothing but its own doing has happened
// up to there since the last time: compacting that would only lead to the next.
// A store that is full takes no tombstones. It is worth compacting all the more:
// clients from before that will list.
func (f *Feed) BeforeCompaction(ctx context.Context, store Grounds, at storage.Revision) (bool, error) {
	for attempt := 1; ; attempt++ {
		worth, err := f.buryBefore(ctx, store, at)
		if errors.Is(err, storage.ErrFull) {
			f.opts.Logger.Warn("deletions are forgotten with the history that is compacted: the store is full", "revision", at, "error", err)
			return true, nil
		}
		overtaken := errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrCompacted)
		if !overtaken || attempt == burialAttempts {
			return worth, err
		}
	}
}

// Compactable returns the store as storage.CompactLoop is to see it: not newer than
// the caches. So nothing is forgotten that they have yet to be told, however little
// history is kept, and however busy the machine is.
func (f *Feed) Compactable(store storage.Compactor) storage.Compactable {
	return compactable{store, f.progress}
}

type compactable struct {
	storage.Compactor
	told *Progress
}

// Current implements storage.Compactable.
func (c compactable) Current(context.Context) (storage.Revision, error) { return c.told.Reached(), nil }

// burialAttempts is how often it is tried when other servers do the same.
const burialAttempts = 3

func (f *Feed) buryBefore(ctx context.Context, store Grounds, at storage.Revision) (bool, error) {
	// First: what is written down later reaches at least as far.
	oldest, err := store.Oldest(ctx)
	if err != nil {
		return false, err
	}
	b, err := f.loadTombstones(ctx, store)
	if err != nil {
		return false, err
	}
	if b.through() >= at {
		return true, nil // written down already, by somebody whose compaction failed
	}
	known := max(b.through(), 1)
	// Beyond it, if somebody has compacted further than was written down.
	found, since, changed, err := f.deletions(ctx, store, max(known, oldest), at)
	if err != nil || !changed {
		return false, err
	}
	if since > known {
		b.startAnew(since)
	}
	b.beginIfFull()
	if err := f.writeDown(ctx, store, b, found); err != nil {
		return false, err
	}
	if err := b.save(ctx, store, at); err != nil {
		return false, err
	}
	return true, b.forget(ctx, store, &f.opts)
}

// writeDown adds deletions to the batches, and saves those that become full.
func (f *Feed) writeDown(ctx context.Context, store Grounds, b *batches, found []tombstone) error {
	for i := range found {
		if last := &b.list[len(b.list)-1]; last.full() && i > 0 && found[i-1].revision < found[i].revision {
			if err := b.save(ctx, store, found[i-1].revision); err != nil {
				return err
			}
			b.beginIfFull()
		}
		kept, err := f.complete(ctx, store, &found[i])
		switch {
		case errors.Is(err, errUntold):
			b.startAnew(found[i].revision)
		case err != nil:
			return err
		case kept:
			b.add(found[i])
		}
	}
	return nil
}

// deletions reads the deletions in (from, through], the newest if there are more
// than are kept, and whether anything has changed at all. None after since is
// missing.
func (f *Feed) deletions(ctx context.Context, store storage.Historian, from, through storage.Revision) (found []tombstone, since storage.Revision, changed bool, err error) {
	since = from
	err = store.Replay(ctx, f.opts.Prefix, from, through, func(events []storage.Event) error {
		changed = true
		for i := range events {
			if !events[i].Deleted || f.member(events[i].Key) == nil {
				continue // nobody serves it
			}
			found = append(found, tombstone{key: events[i].Key, revision: events[i].Revision})
			if len(found) > f.opts.Tombstones {
				since = found[0].revision
			}
			for len(found) > 0 && found[0].revision == since {
				found = found[1:]
			}
		}
		return nil
	})
	return found, since, changed, err
}

// complete reads what is worth keeping of the object that was deleted. It is
// false if there was none, or if nobody can have been shown it; see lastGood.
func (f *Feed) complete(ctx context.Context, store storage.Reader, t *tombstone) (bool, error) {
	m := f.member(t.key)
	if m == nil {
		return false, nil // nobody serves it any more
	}
	o, err := m.cache.lastGood(ctx, store, m.prefix, t.key[len(m.prefix):], t.revision)
	if o == nil || err != nil {
		return false, err
	}
	t.written, t.created, t.residue = o.Revision, o.created, m.cache.residue(o).JSON
	return true, nil
}

func (f *Feed) member(key string) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.route(key)
}

// remembered are the tombstones of the store up to a revision, by the prefix of
// their cache, and from where on they are complete.
type remembered struct {
	since storage.Revision
	by    map[string][]grave
}

// remember loads those of some members. They join what is known of revisions
// after from only if they reach up to there.
func (f *Feed) remember(ctx context.Context, members []*member, from storage.Revision) (remembered, error) {
	r := remembered{since: from, by: make(map[string][]grave, len(members))}
	b, err := f.loadTombstones(ctx, f.store)
	if err != nil || b.through() < from {
		return r, err
	}
	for _, m := range members {
		r.by[m.prefix] = nil
	}
	for _, batch := range b.list {
		for i := range batch.list {
			if t := &batch.list[i]; t.revision <= from {
				f.remind(&r, t, batch.saved)
			}
		}
	}
	r.since = min(from, b.list[0].from)
	return r, nil
}

// behind joins what a replay from a revision on has told with what the store
// has kept of the time before.
func (p past) behind(old remembered, dead []grave, from storage.Revision) past {
	if from > p.through {
		// The store has been compacted since the fill. What was deleted in between
		// is in the log.
		p.from, p.since, p.dead = p.through, p.through, nil
		dead = slices.DeleteFunc(dead, func(g grave) bool { return g.revision > p.through })
	} else if p.since > from {
		return p // deletions in between had to be left out
	}
	p.since, p.dead = min(old.since, p.since), append(dead, p.dead...)
	return p
}

// remind adds one tombstone.
func (f *Feed) remind(r *remembered, t *tombstone, saved time.Time) {
	m := f.member(t.key)
	if m == nil {
		return
	}
	list, wanted := r.by[m.prefix]
	if !wanted {
		return
	}
	o, err := m.cache.revive(t, t.key[len(m.prefix):])
	if err != nil {
		f.opts.Logger.Warn("a tombstone in the store cannot be read", "key", t.key, "error", err)
		return
	}
	if n := len(list); n > 0 && list[n-1].revision == t.revision {
		list[n-1].through = t.revision - 1
	}
	r.by[m.prefix] = append(list, grave{t.revision, t.revision, o, saved})
}

// revive makes the last state of a deleted object, as far as it is kept.
func (c *Cache) revive(t *tombstone, key string) (*Object, error) {
	attributes, err := c.res.Attributes(t.residue)
	if err != nil {
		return nil, err
	}
	o, err := NewObject(key, t.written, attributes, t.residue)
	if err != nil {
		return nil, err
	}
	o.residue, o.created, o.steady = true, t.created, t.written
	return o, nil
}
