package watchcache

import (
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
)

// attach adds a watcher to its bucket and puts its cursor where its events begin.
// The lock is held.
func (c *Cache) attach(w *Watcher) {
	w.bucket = c.bucketFor(w.selection)
	w.bucket.watchers++
	w.generation = c.generation.Load()
	c.seek(w, c.firstFor(w))
	c.counters.watchers.Add(1)
	if w.waker == nil {
		w.ready = make(chan struct{}, 1)
		w.signal() // so that waiting before the first Read does not hang
	}
}

// firstFor returns the position of the first entry that a watcher needs: the first one behind its
// summary, its snapshot, or the revision after which it starts. A snapshot may lack what has come at
// its own revision since (ApplyNext). The lock is held.
func (c *Cache) firstFor(w *Watcher) uint64 {
	if w.summary != nil {
		return w.summary.position
	}
	if w.initial != nil && c.oneByOne.Load() {
		if end := w.initial.LogEnd(); end >= c.log.Oldest() {
			return end
		}
	}
	return c.log.Search(func(e *eventlog.Entry) bool { return e.Revision > w.after })
}

// seek puts the cursor before an entry of the cache's log. The lock is held.
func (c *Cache) seek(w *Watcher, first uint64) {
	w.catchUp, w.catchUpEnd = 0, 0
	switch b := w.bucket; {
	case b == c.all:
		w.position = first
	case b.start <= first:
		w.position = b.log.Search(func(e *eventlog.Entry) bool { return e.Sequence >= first })
	default:
		// The bucket was made after the first event that the watcher needs.
		w.catchUp, w.catchUpEnd, w.position = first, c.log.End(), b.log.End()
	}
}

// bucketFor returns the bucket of the selection's narrowest interest, and makes
// it if there is none. The lock is held.
func (c *Cache) bucketFor(s *Selection) *bucket {
	candidates := s.Interests(c.res.Namespaced)
	if len(candidates) == 0 {
		return c.all
	}
	i := c.narrowest(candidates)
	table := c.index.table(&i)
	b := table[i.Value]
	if b == nil {
		b = newBucket(i, c.log.End())
		table[i.Value] = b
	}
	return b
}

// narrowest picks the interest that the fewest of the latest events touched; of
// several the one that is listed first.
func (c *Cache) narrowest(candidates []state.Interest) state.Interest {
	if len(candidates) == 1 {
		return candidates[0]
	}
	const sample = 128
	end := c.log.End()
	start := max(c.log.Oldest(), end-min(end, sample))
	best, fewest := 0, sample+1
	for i := range candidates {
		touched := 0
		for p := start; p < end; p++ {
			if touches(&candidates[i], c.log.At(p), c.res) {
				touched++
			}
		}
		if touched < fewest {
			best, fewest = i, touched
		}
	}
	return candidates[best]
}

// detach removes a watcher, and its bucket if it was the bucket's last.
func (c *Cache) detach(w *Watcher) {
	w.bucket.remove(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counters.watchers.Add(-1)
	w.bucket.watchers--
	if w.bucket.watchers == 0 && w.bucket != c.all {
		c.index.remove(w.bucket)
	}
}
