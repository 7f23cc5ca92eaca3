package watchcache

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// What a Budget leaves each cache, in bytes.
const (
	// minHistory is what the log of a small resource may take: some seconds of a
	// rollout, which is how long a client is away that reconnects.
	minHistory = 4 << 20
	// minTombstones is what the tombstones of a small resource may take: thousands.
	minTombstones = 2 << 20
	// shedHistory is what a cache keeps of its log when the process is short of memory.
	shedHistory = 256 << 10
)

// Budget bounds the past that all caches of a process keep together. A client that
// resumes from before it converges by coalesced history, so that the past is a matter of
// comfort, and must not take more than what lives:
//
//   - A cache's log may take as many bytes as the cache's objects, or minHistory if those
//     are few; and its tombstones the same.
//   - All logs together may take BudgetOptions.HistoryBytes. Beyond that, the log that
//     reaches back furthest is shortened first: so they reach back equally far, and a busy
//     resource has the most.
//   - A process that comes near its memory limit keeps less: see Limit.
//
// Caches call the budget without holding a lock; it takes its own lock before theirs.
type Budget struct {
	most int64 // bytes of all logs

	// appended counts bytes until the logs are next added up.
	appended atomic.Int64
	// now is the limit of all logs at this moment: most, or less if memory is short.
	now atomic.Int64

	mu         sync.Mutex
	caches     map[*Cache]struct{}
	collection uint64 // of the last Limit
}

// BudgetOptions tunes a Budget. The zero value of every member means its default.
type BudgetOptions struct {
	// HistoryBytes is how much memory, in bytes, the logs of all caches may take
	// together; 256 MiB.
	HistoryBytes int64
}

// NewBudget returns a budget for caches that are made with it.
func NewBudget(opts BudgetOptions) *Budget {
	b := &Budget{most: cmp.Or(opts.HistoryBytes, 256<<20), caches: map[*Cache]struct{}{}}
	b.now.Store(b.most)
	return b
}

// join makes the budget count a cache. The receiver may be nil.
func (b *Budget) join(c *Cache) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caches[c] = struct{}{}
}

// Leave makes the budget forget a cache that is no longer served. The receiver may be nil.
func (b *Budget) Leave(c *Cache) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.caches, c)
}

// countEvery is how many bytes may be appended before the logs are added up again.
const countEvery = 256 << 10

// add counts bytes that a cache has appended, and shortens logs if all of them
// are too long. No lock is held by the caller. The receiver may be nil.
func (b *Budget) add(bytes int64) {
	if b == nil || b.appended.Add(bytes) < countEvery {
		return
	}
	compressCold(b.shortenNow())
}

// shortenNow is shorten for a caller without the lock.
func (b *Budget) shortenNow() []*Cache {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.appended.Store(0)
	return b.shorten()
}

// compressCold has caches compress what their logs have evicted. No lock is held.
func compressCold(shortened []*Cache) {
	for _, c := range shortened {
		c.compressCold()
	}
}

// shorten evicts from the logs that reach back furthest until all together are within the
// limit, and a little below it. It returns the caches of those logs. The lock is held.
func (b *Budget) shorten() (shortened []*Cache) {
	limit := b.now.Load()
	total := b.history()
	if total <= limit {
		return nil
	}
	least, step := int64(minHistory), max(limit/32, shedHistory)
	if limit < b.most {
		least = shedHistory
	}
	for total > limit-step {
		c := b.longest(least)
		if c == nil {
			break
		}
		total -= c.shorten(step, least)
		if !slices.Contains(shortened, c) {
			shortened = append(shortened, c)
		}
	}
	return shortened
}

// history adds up the bytes of all logs. The lock is held.
func (b *Budget) history() (total int64) {
	for c := range b.caches {
		total += c.counters.historyBytes.Load()
	}
	return total
}

// longest returns the cache whose log reaches back furthest, of those that take more than
// least bytes; nil if there is none. The lock is held.
func (b *Budget) longest(least int64) (longest *Cache) {
	for c := range b.caches {
		if c.counters.historyBytes.Load() <= least || c.log.Len() <= 1 {
			continue
		}
		if longest == nil || c.baseRevision.Load() < longest.baseRevision.Load() {
			longest = c
		}
	}
	return longest
}

// Memory is how the process stands after a collection of garbage.
type Memory struct {
	Live       uint64 // bytes that the collection has found to be in use
	Limit      uint64 // bytes that the process may use; math.MaxInt64 if that is unlimited
	Collection uint64 // its number
}

// Shares of the memory limit, in percent of it. Beyond crowded, Go's runtime would collect
// all the time.
const (
	crowded = 70
	roomy   = 60
)

// Limit adapts the budget to the memory that is in use: near the limit the logs lose as
// much as is too much, and then the blocks of lists. When there is room again, the
// budget grows back by a quarter of it with each collection.
func (b *Budget) Limit(m Memory) { compressCold(b.limit(m)) }

// limit is Limit without what is done without the lock. It returns the caches whose logs
// it has shortened.
func (b *Budget) limit(m Memory) (shortened []*Cache) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Collection == b.collection {
		return nil
	}
	b.collection = m.Collection
	live, limit := int64(min(m.Live, 1<<62)), int64(min(m.Limit, 1<<62))
	switch upper, lower := limit/100*crowded, limit/100*roomy; {
	case live > upper:
		excess, total := live-upper, b.history()
		b.now.Store(max(0, min(b.now.Load(), total)-excess))
		shortened = b.shorten()
		if excess -= total - b.history(); excess > 0 {
			b.shedBlocks(excess)
		}
	case live < lower:
		b.now.Store(min(b.most, b.now.Load()+(lower-live)/4))
	}
	return shortened
}

// shedBlocks drops blocks of lists until so many bytes are free. The lock is held.
func (b *Budget) shedBlocks(bytes int64) {
	for c := range b.caches {
		if bytes <= 0 {
			return
		}
		bytes -= c.blocks.Shed(bytes)
	}
}

// shorten evicts the oldest events of the log, so many bytes or until it takes least,
// and returns how many bytes that were.
func (c *Cache) shorten(bytes, least int64) (freed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.counters.historyBytes.Load()
	for c.log.Len() > 1 && freed < bytes && before-freed > least {
		c.drop()
		freed = before - c.counters.historyBytes.Load()
	}
	c.forgetOldSummary()
	return freed
}

// historyLimit is how many bytes the log may take.
func (c *Cache) historyLimit() int64 {
	if c.opts.Budget == nil {
		return c.opts.HistoryBytes
	}
	return min(c.opts.HistoryBytes, max(minHistory, c.counters.objectBytes.Load()))
}
