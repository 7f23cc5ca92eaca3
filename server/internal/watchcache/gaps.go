package watchcache

import "github.com/levelwire/levelwire/storage"

// gap is a range of revisions through which a refill took the cache, both ends excluded: it knows
// what differs between the two ends, and not each change. That is right for clients that
// had the state of the first end, or an earlier one. A client with a revision in between may have
// it from another server on the same store, and know an object that was made and deleted
// meanwhile: the cache would never send it the deletion. Such a client has to list.
type gap struct{ from, through storage.Revision }

// gaps are the gaps of a cache, in ascending order. A published list is immutable.
type gaps []gap

// maxGaps is how many gaps are kept. Beyond it the earliest two become one.
const maxGaps = 32

// with returns the list with another gap behind.
func (g *gaps) with(from, through storage.Revision) *gaps {
	var list gaps
	if g != nil {
		list = append(list, *g...)
	}
	list = append(list, gap{from, through})
	if len(list) > maxGaps {
		list[1].from = list[0].from
		list = list[1:]
	}
	return &list
}

// has reports whether a revision is in a gap.
func (g *gaps) has(revision storage.Revision) bool {
	if g == nil {
		return false
	}
	for _, gap := range *g {
		if gap.from < revision && revision < gap.through {
			return true
		}
	}
	return false
}

// noteGap notes that a refill takes the cache from one revision to another. It comes before
// the changes of the refill and before its revision, so that no watcher goes on without knowing
// it. The lock is held.
func (c *Cache) noteGap(from, through storage.Revision) {
	if through <= from+1 {
		return // no revision is between the two
	}
	c.gaps.Store(c.gaps.Load().with(from, through))
	c.gapsBegun.Add(1)
	c.wakeAll()
}

// BeginGap says that what is applied from now on may be less than every change: watchers with
// WatchOptions.EndAtGaps end before it.
func (c *Cache) BeginGap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gapsBegun.Add(1)
	c.wakeAll()
}

// HasGapAfter reports whether a refill has taken the cache through a gap that ends after a
// revision: a watch from there gets less than every change.
func (c *Cache) HasGapAfter(revision storage.Revision) bool {
	known := c.gaps.Load()
	return known != nil && (*known)[len(*known)-1].through > revision
}

// gapAhead reports whether the watcher has to end because a gap has begun since it did.
func (w *Watcher) gapAhead() bool { return w.endAtGaps && w.cache.gapsBegun.Load() != w.gapsBegun }

// endsAtGap returns the error of a watcher that has to end because of a gap, if it has to.
func (w *Watcher) endsAtGap() error {
	if w.inGap() {
		return w.reset()
	}
	if w.gapAhead() {
		return ErrClosed
	}
	return nil
}

// inGap reports whether the watcher began at a revision that a gap of its cache has. It looks at
// each list of gaps once, unless the answer is yes.
func (w *Watcher) inGap() bool {
	known := w.cache.gaps.Load()
	if known == w.gaps {
		return false
	}
	if !w.own && known.has(w.after) {
		return true
	}
	w.gaps = known
	return false
}
