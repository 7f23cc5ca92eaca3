package feed

import "github.com/levelwire/levelwire/storage"

// Stats is a feed's counters at one moment.
type Stats struct {
	Revision      storage.Revision // reached by all caches that are served
	Resumes       int64            // streams that broke and were resumed
	Relists       int64            // lists of a cache, the first fills included
	Checks        int64            // comparisons of a cache with the store
	Discrepancies int64            // that those found
	Disorders     int64            // streams that delivered a change that had been passed, or the same twice
	Lost          int64            // times that the stream was found to have left something out
	Undecodable   int64            // values that were skipped
	Unrouted      int64            // changes of keys that no cache holds
	Forgotten     int64            // compactions whose tombstones could not be written
	Fills         []FillStats      // of the caches that are being filled
}

// FillStats is the progress of one fill.
type FillStats struct {
	Resource string
	Objects  int64 // loaded so far
}

// Stats returns the counters.
func (f *Feed) Stats() Stats {
	s := Stats{
		Revision:      f.reachedByAll(),
		Resumes:       f.resumes.Load(),
		Relists:       f.relists.Load(),
		Checks:        f.checks.Load(),
		Discrepancies: f.discrepancies.Load(),
		Disorders:     f.disorders.Load(),
		Lost:          f.lost.Load(),
		Undecodable:   f.undecodable.count.Load(),
		Unrouted:      f.unrouted.Load(),
		Forgotten:     f.forgotten.Load(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.order {
		if m.filling {
			s.Fills = append(s.Fills, FillStats{m.cache.Resource().GroupResource().String(), m.loaded.Load()})
		}
	}
	return s
}
