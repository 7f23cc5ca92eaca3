package watchcache

import "sync/atomic"

// counters are what a cache counts.
type counters struct {
	events, evicted, wakes, expired, resets, repaired atomic.Int64
	watchers, objectBytes, historyBytes               atomic.Int64
}

// Stats is a cache's counters at one moment, for metrics and tests.
type Stats struct {
	Objects      int   // now held
	ObjectBytes  int64 // of their JSON
	HistoryLen   int   // events now in the history
	HistoryBytes int64 // that they hold, an estimate
	FormBytes    int64 // of the forms made of objects that the cache holds
	Watchers     int   // now open
	Buckets      int   // interests that those share
	Events       int64 // applied since the start
	Evicted      int64 // events dropped from the history
	Wakes        int64 // watchers woken
	Expired      int64 // watchers and reads refused because history was gone
	Resets       int64 // times that the whole history was given up
	Repaired     int64 // differences to the store found and mended
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	buckets := 0
	c.mu.Lock()
	c.index.each(func(*bucket) { buckets++ })
	c.mu.Unlock()
	n := &c.counters
	return Stats{
		Objects:      c.state.Load().tree.Len(),
		ObjectBytes:  n.objectBytes.Load(),
		HistoryLen:   c.log.len(),
		HistoryBytes: n.historyBytes.Load(),
		FormBytes:    c.account.Load().bytes.Load(),
		Watchers:     int(n.watchers.Load()),
		Buckets:      buckets,
		Events:       n.events.Load(),
		Evicted:      n.evicted.Load(),
		Wakes:        n.wakes.Load(),
		Expired:      n.expired.Load(),
		Resets:       n.resets.Load(),
		Repaired:     n.repaired.Load(),
	}
}
