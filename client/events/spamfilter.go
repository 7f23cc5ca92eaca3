package events

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// spamFilter has a token bucket for each object and event type. It tracks the
// trackedMost that were used last; one that returns after that has a full bucket.
type spamFilter struct {
	burst   int
	refill  rate.Limit
	mu      sync.Mutex
	buckets *lru.Cache // of *bucket by subject
}

type bucket struct {
	limiter *rate.Limiter
	emptied bool // a drop was logged
}

func newSpamFilter(burst int, interval time.Duration) *spamFilter {
	return &spamFilter{burst: burst, refill: rate.Every(interval), buckets: lru.New(trackedMost)}
}

// allow takes a token for an event at a time. firstDrop is true for the first event
// of the subject that finds no token.
func (f *spamFilter) allow(about subject, at time.Time) (ok, firstDrop bool) {
	if f.burst < 0 {
		return true, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var b *bucket
	if tracked, found := f.buckets.Get(about); found {
		b = tracked.(*bucket)
	} else {
		b = &bucket{limiter: rate.NewLimiter(f.refill, f.burst)}
		f.buckets.Add(about, b)
	}
	if b.limiter.AllowN(at, 1) {
		return true, false
	}
	firstDrop = !b.emptied
	b.emptied = true
	return false, firstDrop
}
