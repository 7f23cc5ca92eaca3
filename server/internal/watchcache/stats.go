package watchcache

import "sync/atomic"

// counters are what a cache counts.
type counters struct {
	events, evicted, wakes, resets, repaired  atomic.Int64
	resumedExact, resumedCoalesced, continued atomic.Int64
	begunInitial, forgotten                   atomic.Int64
	expiredOld, expiredSlow, expiredReset     atomic.Int64
	refusedExact, refusedRest                 atomic.Int64
	watchers, objectBytes, historyBytes       atomic.Int64
}

// Stats is a cache's counters at one moment, for metrics and tests.
type Stats struct {
	Objects        int   // now held
	ObjectBytes    int64 // of their JSON
	HistoryLen     int   // events now in the history
	HistoryBytes   int64 // that they hold, an estimate
	FormBytes      int64 // of the forms made of objects that the cache holds, blocks included
	BlockBytes     int64 // of the blocks among them, which lists share
	Watchers       int   // now open
	Buckets        int   // interests that those share
	Events         int64 // applied since the start
	Evicted        int64 // events dropped from the history
	Wakes          int64 // watchers woken
	Resumes        Resumes
	Tombstones     int   // deletions that are remembered though the log has dropped them
	TombstoneBytes int64 // that they hold, an estimate
	Forgotten      int64 // reads of the past that only the store may still answer
	Expired        int64 // watchers and reads refused because history was gone
	ExpiredBy      Expiries
	Resets         int64 // times that the whole history was given up
	Repaired       int64 // differences to the store found and mended
}

// Resumes counts watchers by what they were told to begin with.
type Resumes struct {
	Initial   int64 // the state as it was
	Exact     int64 // started at a revision that the log reaches back to
	Coalesced int64 // started before that, with coalesced history
	Continued int64 // fell out of the log while they were read, and went on with that
}

// Expiries counts what was refused because history was gone, by reason.
type Expiries struct {
	Old   int64 // watchers that were to start before it
	Slow  int64 // watchers that were slower than it
	Reset int64 // watchers whose cache has given its history up
	Exact int64 // reads at a revision that the store has forgotten, too; see Refused
	Rest  int64 // the same of the rest of a list
}

// Refused counts a read at a revision that neither the cache nor the store can tell
// any more: of the rest of a list, or of all of one.
func (c *Cache) Refused(rest bool) {
	if rest {
		c.counters.refusedRest.Add(1)
	} else {
		c.counters.refusedExact.Add(1)
	}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	buckets := 0
	c.mu.Lock()
	c.index.each(func(*bucket) { buckets++ })
	tombstones, tombstoneBytes := len(c.graves.list), c.graves.bytes
	c.mu.Unlock()
	n, blockBytes := &c.counters, c.blocks.held()
	expired := Expiries{
		Old: n.expiredOld.Load(), Slow: n.expiredSlow.Load(), Reset: n.expiredReset.Load(), Exact: n.refusedExact.Load(), Rest: n.refusedRest.Load(),
	}
	return Stats{
		Objects:        c.state.Load().tree.Len(),
		ObjectBytes:    n.objectBytes.Load(),
		HistoryLen:     c.log.len(),
		HistoryBytes:   n.historyBytes.Load(),
		FormBytes:      c.account.Load().bytes.Load() + blockBytes,
		BlockBytes:     blockBytes,
		Watchers:       int(n.watchers.Load()),
		Buckets:        buckets,
		Events:         n.events.Load(),
		Evicted:        n.evicted.Load(),
		Wakes:          n.wakes.Load(),
		Resumes:        Resumes{Initial: n.begunInitial.Load(), Exact: n.resumedExact.Load(), Coalesced: n.resumedCoalesced.Load(), Continued: n.continued.Load()},
		Tombstones:     tombstones,
		TombstoneBytes: tombstoneBytes,
		Forgotten:      n.forgotten.Load(),
		Expired:        expired.Old + expired.Slow + expired.Reset + expired.Exact + expired.Rest,
		ExpiredBy:      expired,
		Resets:         n.resets.Load(),
		Repaired:       n.repaired.Load(),
	}
}
