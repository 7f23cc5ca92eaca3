package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Queue returns a collector of a work queue under a name: read is its Stats
// method. Each queue of a registry needs a name of its own. [Workqueue] has the
// names that dashboards know.
func Queue(name string, read func() workqueue.Stats) prometheus.Collector {
	q := &queue{read: read}
	label := prometheus.Labels{"queue": name}
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("levelwire_workqueue_"+name, help, nil, label)
	}
	q.numbers.gauge(describe("depth", "Keys that wait for a worker."), func(m workqueue.Stats) float64 { return float64(m.Depth) })
	q.numbers.gauge(describe("delayed", "Keys that wait for their time."), func(m workqueue.Stats) float64 { return float64(m.Delayed) })
	q.numbers.gauge(describe("working", "Keys that workers have."), func(m workqueue.Stats) float64 { return float64(m.Working) })
	q.numbers.gauge(describe("unfinished_seconds", "For how long workers have had those, all together."), func(m workqueue.Stats) float64 { return m.Unfinished.Seconds() })
	q.numbers.gauge(describe("longest_seconds", "For how long the worker that has been busiest has."), func(m workqueue.Stats) float64 { return m.Longest.Seconds() })
	q.numbers.counter(describe("adds_total", "Keys that began to wait."), func(m workqueue.Stats) uint64 { return m.Adds })
	q.numbers.counter(describe("retries_total", "Keys added with a delay."), func(m workqueue.Stats) uint64 { return m.Retries })
	q.numbers.counter(describe("rejected_total", "Keys added after the shutdown."), func(m workqueue.Stats) uint64 { return m.Rejected })
	q.numbers.counter(describe("panics_total", "Calls of the rate limiter that panicked."), func(m workqueue.Stats) uint64 { return m.Panics })
	q.waited = describe("wait_seconds", "How long keys waited for a worker.")
	q.worked = describe("work_seconds", "How long workers had keys.")
	return q
}

type queue struct {
	read           func() workqueue.Stats
	numbers        numbers[workqueue.Stats]
	depths         *priorityDepths // nil: depth is one of numbers
	waited, worked *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (q *queue) Describe(out chan<- *prometheus.Desc) {
	q.numbers.describe(out)
	if q.depths != nil {
		out <- q.depths.desc
	}
	out <- q.waited
	out <- q.worked
}

// Collect implements prometheus.Collector.
func (q *queue) Collect(out chan<- prometheus.Metric) {
	m := q.read()
	q.numbers.collect(out, m)
	if q.depths != nil {
		q.depths.collect(out, m.Priorities)
	}
	out <- histogram(q.waited, queueBounds[:], m.WaitedWithin[:], m.Waited)
	out <- histogram(q.worked, queueBounds[:], m.WorkedWithin[:], m.Worked)
}

var queueBounds = workqueue.BucketBounds()

// histogram is cumulative, as Prometheus wants it. within has a bucket more than
// there are bounds. The count is that of the buckets, so that they agree
// whatever happened in between.
func histogram(desc *prometheus.Desc, bounds []time.Duration, within []uint64, total time.Duration, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(bounds))
	var count uint64
	for n, bound := range bounds {
		count += within[n]
		buckets[bound.Seconds()] = count
	}
	count += within[len(bounds)]
	return prometheus.MustNewConstHistogram(desc, count, total.Seconds(), buckets, labels...)
}
