package workqueue

import "time"

// Metrics is what a queue has counted since it was made, and how it stands.
type Metrics struct {
	Depth    int           // keys that wait for a worker
	Delayed  int           // keys that wait for their time
	Working  int           // keys that workers have
	Adds     uint64        // keys that began to wait (duplicates are not counted)
	Retries  uint64        // keys added with a delay
	Done     uint64        // keys that workers finished
	Waited   time.Duration // total time that keys waited for a worker
	Worked   time.Duration // total time that workers had keys
	Longest  time.Duration // how long the oldest key has been worked on
	Rejected uint64        // keys added after the shutdown
}

// Metrics returns the counters and gauges of this moment. It looks at every
// key that is being worked on.
func (q *Queue[K]) Metrics() Metrics {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.counts
	m.Depth, m.Delayed, m.Working = q.ready.Len(), q.delayed.Len(), q.working
	if q.working > 0 {
		now := time.Now()
		for _, e := range q.entries {
			if e.working {
				m.Longest = max(m.Longest, now.Sub(e.since))
			}
		}
	}
	return m
}
