package fairqueue

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// WaitBuckets are the upper bounds, in seconds, of the histograms of Waits.
var WaitBuckets = []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}

// Waits is a histogram of how long requests have waited.
type Waits struct {
	Count   uint64
	Seconds float64
	Counts  []uint64 // by WaitBuckets, cumulative
}

func (w *Waits) add(d time.Duration) {
	if w.Counts == nil {
		w.Counts = make([]uint64, len(WaitBuckets))
	}
	w.Count++
	w.Seconds += d.Seconds()
	for i := len(WaitBuckets) - 1; i >= 0 && d.Seconds() <= WaitBuckets[i]; i-- {
		w.Counts[i]++
	}
}

// Schema counts the requests of one level that one FlowSchema has classified.
type Schema struct {
	name string

	// Guarded by Seats.mu.
	executing, waiting           int
	executingSeats, waitingSeats int64
	immediate                    uint64 // dispatched without waiting
	waits, vain                  Waits
	rejects                      Rejections
}

// Rejections counts requests that were refused, by reason.
type Rejections struct{ QueueFull, ConcurrencyLimit, Timeout, Cancelled uint64 }

func (c *Schema) queued(requests int, seats int64) {
	c.waiting += requests
	c.waitingSeats += seats
}

func (c *Schema) dispatched(after time.Duration) {
	if after == 0 {
		c.immediate++
		return
	}
	c.waits.add(after)
}

func (c *Schema) rejected(reason error) {
	switch {
	case errors.Is(reason, ErrQueueFull):
		c.rejects.QueueFull++
	case errors.Is(reason, ErrConcurrencyLimit):
		c.rejects.ConcurrencyLimit++
	case errors.Is(reason, ErrTimeout):
		c.rejects.Timeout++
	default:
		c.rejects.Cancelled++
	}
}

// gaveUp counts a request that has waited in vain.
func (c *Schema) gaveUp(reason error, after time.Duration) {
	c.rejected(reason)
	c.vain.add(after)
}

// LevelStats is the state of a level at one moment.
type LevelStats struct {
	Name   string
	Exempt bool
	// Nominal, Lower and Upper are the limits; Current is how many seats the level could
	// use at this moment. An exempt level has none but Nominal and Lower.
	Nominal, Lower, Upper, Current int64
	Used                           int64
	Schemas                        []SchemaStats
	// Flows are those that hold seats or wait.
	Flows []FlowStats
}

// SchemaStats is the state of a FlowSchema in its level.
type SchemaStats struct {
	Name                         string
	Executing, Waiting           int
	ExecutingSeats, WaitingSeats int64
	Dispatched                   uint64
	Waits                        Waits // of those that were dispatched
	WaitsInVain                  Waits // of those that were refused after they had waited
	Rejected                     Rejections
}

// FlowStats is the state of a flow.
type FlowStats struct {
	Schema, Key string
	Seats       int64
	Waiting     int
	Longest     time.Duration // that one of them has waited
	Requests    []WaitingStats
}

// WaitingStats is the state of a request that waits.
type WaitingStats struct {
	Since time.Time
	Seats int64 // that it waits for
}

// Stats returns the state of all levels, by name. The flows are left out unless asked
// for.
func (s *Seats) Stats(flows bool) []LevelStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []LevelStats
	for _, l := range s.sorted() {
		stats := LevelStats{
			Name: l.config.Name, Exempt: l.config.Exempt, Nominal: l.nominal, Lower: l.guaranteed, Used: l.used,
		}
		if !l.config.Exempt {
			stats.Upper = min(l.most, s.limit)
			stats.Current = l.used + max(l.headroom(), 0)
		}
		for _, c := range slices.SortedFunc(maps.Values(l.schemas), func(a, b *Schema) int { return cmp.Compare(a.name, b.name) }) {
			stats.Schemas = append(stats.Schemas, c.stats())
		}
		if flows {
			stats.Flows = l.flowStats()
		}
		all = append(all, stats)
	}
	return all
}

func (c *Schema) stats() SchemaStats {
	waits := c.waits
	waits.Counts = make([]uint64, len(WaitBuckets))
	copy(waits.Counts, c.waits.Counts)
	for i := range waits.Counts {
		waits.Counts[i] += c.immediate
	}
	waits.Count += c.immediate
	vain := c.vain
	vain.Counts = slices.Clone(vain.Counts)
	return SchemaStats{
		Name: c.name, Executing: c.executing, Waiting: c.waiting, ExecutingSeats: c.executingSeats, WaitingSeats: c.waitingSeats,
		Dispatched: waits.Count, Waits: waits, WaitsInVain: vain, Rejected: c.rejects,
	}
}

func (l *Level) flowStats() []FlowStats {
	var all []FlowStats
	for _, f := range l.flows {
		if f.held == 0 && f.waiters.Len() == 0 {
			continue
		}
		stats := FlowStats{Schema: f.schema.name, Key: f.key, Seats: f.held, Waiting: f.waiters.Len()}
		if w := f.first(); w != nil {
			stats.Longest = time.Since(w.since)
		}
		for e := f.waiters.Front(); e != nil; e = e.Next() {
			if w, ok := e.Value.(*waiter); ok {
				stats.Requests = append(stats.Requests, WaitingStats{w.since, w.n})
			}
		}
		all = append(all, stats)
	}
	slices.SortFunc(all, func(a, b FlowStats) int { return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Key, b.Key)) })
	return all
}
