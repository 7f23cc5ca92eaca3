package watchcache

import "sync/atomic"

// counters are the counters of a cache; see Stats.
type counters struct {
	events, evicted, wakes, resets, repaired  atomic.Int64
	resumedExact, resumedCoalesced, continued atomic.Int64
	begunInitial, beforeLog                   atomic.Int64
	expiredOld, expiredSlow, expiredReset     atomic.Int64
	refusedExact, refusedContinue             atomic.Int64
	watchers, historyBytes                    atomic.Int64
	objectBytes, heldBytes                    atomic.Int64
}

// Stats is a cache's counters at one moment, for metrics and tests.
type Stats struct {
	Objects        int   // in the newest state
	ObjectBytes    int64 // of their JSON
	HeldBytes      int64 // that their JSON takes: less than that if some are compressed; dictionaries included
	HistoryLen     int   // events in the log
	HistoryBytes   int64 // that they take, an estimate
	FormBytes      int64 // of the forms made of objects that the cache holds, blocks included
	BlockBytes     int64 // of the blocks among them, which lists share
	Watchers       int   // open now
	Buckets        int   // interests that those share
	LookedAt       int64 // objects that lists and streams have compared with a selector
	Selected       int64 // objects among those that a selector selected
	Events         int64 // applied since the start
	Evicted        int64 // events evicted from the log
	Wakes          int64 // watchers woken
	Resumes        Resumes
	Tombstones     int   // deletions that are kept although the log has evicted them
	TombstoneBytes int64 // that they take, an estimate
	BeforeLog      int64 // exact reads from before the log, which only the store may answer
	Expired        int64 // watchers and reads refused because their history was gone
	ExpiredBy      Expiries
	Resets         int64 // how often the whole log was dropped
	Repaired       int64 // discrepancies to the store that were corrected
}

// Resumes counts watchers by how they started.
type Resumes struct {
	Initial   int64 // with the objects of a snapshot
	Exact     int64 // at a revision to which the log reaches back
	Coalesced int64 // before the log, with coalesced history
	Continued int64 // went on with coalesced history because they were slower than the log
}

// Expiries counts watchers and reads that were refused because their history was
// gone, by reason.
type Expiries struct {
	Old      int64 // watchers that were to start before all history
	Slow     int64 // watchers that were slower than the log
	Reset    int64 // watchers whose cache has dropped its log
	Exact    int64 // reads at a revision that the store has compacted; see Refused
	Continue int64 // the same for a continued list
}

// Refused counts a read at a revision that neither the cache nor the store has any
// more: of a continued list, or of a whole one.
func (c *Cache) Refused(continued bool) {
	if continued {
		c.counters.refusedContinue.Add(1)
	} else {
		c.counters.refusedExact.Add(1)
	}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	buckets := 0
	c.mu.Lock()
	c.index.each(func(*bucket) { buckets++ })
	tombstones, tombstoneBytes := c.tombstones.Len(), c.tombstones.Bytes()
	c.mu.Unlock()
	n, blockBytes := &c.counters, c.blocks.Bytes()
	expired := Expiries{
		Old: n.expiredOld.Load(), Slow: n.expiredSlow.Load(), Reset: n.expiredReset.Load(), Exact: n.refusedExact.Load(), Continue: n.refusedContinue.Load(),
	}
	return Stats{
		Objects:        c.state.Load().tree.Len(),
		ObjectBytes:    n.objectBytes.Load(),
		HeldBytes:      n.heldBytes.Load() + c.dictionaryBytes(),
		HistoryLen:     c.log.Len(),
		HistoryBytes:   n.historyBytes.Load(),
		FormBytes:      c.formBytes.Load().Bytes() + blockBytes,
		BlockBytes:     blockBytes,
		Watchers:       int(n.watchers.Load()),
		Buckets:        buckets,
		LookedAt:       c.selects.LookedAt.Load(),
		Selected:       c.selects.Selected.Load(),
		Events:         n.events.Load(),
		Evicted:        n.evicted.Load(),
		Wakes:          n.wakes.Load(),
		Resumes:        Resumes{Initial: n.begunInitial.Load(), Exact: n.resumedExact.Load(), Coalesced: n.resumedCoalesced.Load(), Continued: n.continued.Load()},
		Tombstones:     tombstones,
		TombstoneBytes: tombstoneBytes,
		BeforeLog:      n.beforeLog.Load(),
		Expired:        expired.Old + expired.Slow + expired.Reset + expired.Exact + expired.Continue,
		ExpiredBy:      expired,
		Resets:         n.resets.Load(),
		Repaired:       n.repaired.Load(),
	}
}

// ObjectBytes returns the size of the JSON of all objects in the newest state.
func (c *Cache) ObjectBytes() int64 { return c.counters.objectBytes.Load() }
