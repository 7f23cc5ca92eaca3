package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Queue returns a collector of a work queue under a name: read is its Stats
// method. Each queue of a registry needs a name of its own.
func Queue(name string, read func() workqueue.Stats) prometheus.Collector {
	q := queue{read: read}
	label := prometheus.Labels{"queue": name}
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("levelwire_workqueue_"+name, help, nil, label)
	}
	gauge := func(name, help string, value func(workqueue.Stats) float64) {
		q.numbers = append(q.numbers, queueNumber{describe(name, help), prometheus.GaugeValue, value})
	}
	counter := func(name, help string, value func(workqueue.Stats) uint64) {
		q.numbers = append(q.numbers, queueNumber{describe(name, help), prometheus.CounterValue,
			func(m workqueue.Stats) float64 { return float64(value(m)) }})
	}
	gauge("depth", "Keys that wait for a worker.", func(m workqueue.Stats) float64 { return float64(m.Depth) })
	gauge("delayed", "Keys that wait for their time.", func(m workqueue.Stats) float64 { return float64(m.Delayed) })
	gauge("working", "Keys that workers have.", func(m workqueue.Stats) float64 { return float64(m.Working) })
	gauge("unfinished_seconds", "For how long workers have had those, all together.", func(m workqueue.Stats) float64 { return m.Unfinished.Seconds() })
	gauge("longest_seconds", "For how long the worker that has been busiest has.", func(m workqueue.Stats) float64 { return m.Longest.Seconds() })
	counter("adds_total", "Keys that began to wait.", func(m workqueue.Stats) uint64 { return m.Adds })
	counter("retries_total", "Keys added with a delay.", func(m workqueue.Stats) uint64 { return m.Retries })
	counter("rejected_total", "Keys added after the shutdown.", func(m workqueue.Stats) uint64 { return m.Rejected })
	q.waited = describe("wait_seconds", "How long keys waited for a worker.")
	q.worked = describe("work_seconds", "How long workers had keys.")
	return q
}

type queueNumber struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(workqueue.Stats) float64
}

type queue struct {
	read           func() workqueue.Stats
	numbers        []queueNumber
	waited, worked *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (q queue) Describe(out chan<- *prometheus.Desc) {
	for _, n := range q.numbers {
		out <- n.desc
	}
	out <- q.waited
	out <- q.worked
}

// Collect implements prometheus.Collector.
func (q queue) Collect(out chan<- prometheus.Metric) {
	m := q.read()
	for _, n := range q.numbers {
		out <- prometheus.MustNewConstMetric(n.desc, n.kind, n.value(m))
	}
	out <- histogram(q.waited, m.WaitedWithin, m.Waited)
	out <- histogram(q.worked, m.WorkedWithin, m.Worked)
}

// histogram is cumulative, as Prometheus wants it. Its count is that of its
// buckets, so that they agree whatever happened in between.
func histogram(desc *prometheus.Desc, within [workqueue.Buckets]uint64, total time.Duration) prometheus.Metric {
	buckets := map[float64]uint64{}
	var count uint64
	for n, bound := range workqueue.BucketBounds() {
		count += within[n]
		buckets[bound.Seconds()] = count
	}
	count += within[workqueue.Buckets-1]
	return prometheus.MustNewConstHistogram(desc, count, total.Seconds(), buckets)
}
