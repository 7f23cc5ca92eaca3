package workqueue

import "time"

// Buckets is how many buckets the histograms of [Stats] have.
const Buckets = 11

// BucketBounds are the upper bounds, inclusive, of all buckets but the last,
// which has none: from a microsecond to 1,000 seconds, each ten times the one
// before.
func BucketBounds() [Buckets - 1]time.Duration {
	var bounds [Buckets - 1]time.Duration
	bound := time.Microsecond
	for i := range bounds {
		bounds[i] = bound
		bound *= 10
	}
	return bounds
}

func bucketOf(d time.Duration) int {
	bound := time.Microsecond
	for i := range Buckets - 1 {
		if d <= bound {
			return i
		}
		bound *= 10
	}
	return Buckets - 1
}

// Stats is what a queue has counted since it was made, and how it stands.
type Stats struct {
	Depth    int           // keys that wait for a worker
	Delayed  int           // keys that wait for their time
	Working  int           // keys that workers have
	Adds     uint64        // keys that began to wait (duplicates are not counted)
	Retries  uint64        // keys added with a delay
	Taken    uint64        // keys that workers got
	Done     uint64        // keys that workers finished
	Waited   time.Duration // total time that the Taken waited for a worker
	Worked   time.Duration // total time that workers had the Done
	Rejected uint64        // keys added after the shutdown
	Panics   uint64        // calls of Options.RateLimiter that panicked

	// Priorities are the keys of Depth by priority, the highest first; those of which
	// no key waits are not there.
	Priorities []PriorityDepth

	// Unfinished is for how long the keys that are being worked on have been,
	// all together, and Longest for how long the oldest of them. A worker that
	// is stuck makes both grow.
	Unfinished, Longest time.Duration

	// WaitedWithin counts the Taken by how long they waited, WorkedWithin the
	// Done by how long that took; see BucketBounds. A bucket does not hold what
	// is in those before it.
	WaitedWithin, WorkedWithin [Buckets]uint64
}

// PriorityDepth is how many keys of one priority wait for a worker.
type PriorityDepth struct{ Priority, Depth int }

// Stats returns the counters and gauges of this moment. It looks at every
// key that is being worked on.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.counts
	m.Depth, m.Delayed, m.Working = q.ready.n, len(q.delayed), q.busy
	m.Panics = uint64(q.limiter.panics.Count())
	m.Priorities = q.ready.depths()
	now := time.Now()
	for i := q.working.first; i != nil; i = i.next {
		worked := now.Sub(i.since)
		m.Unfinished += worked
		m.Longest = max(m.Longest, worked)
	}
	return m
}
