package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Workqueue returns a collector of a work queue under the metric names of
// client-go, workqueue_depth and so on, with the label name: for dashboards and
// alerts that know these. read is the queue's Stats method. Each queue of a
// registry needs a name of its own. [Controller] includes it for a controller's
// queue, and [Queue] has the same numbers and more under Levelwire's names.
func Workqueue(name string, read func() workqueue.Stats) prometheus.Collector {
	q := &queue{read: read}
	label := prometheus.Labels{"name": name}
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("workqueue_"+name, help, nil, label)
	}
	q.numbers.gauge(describe("depth", "Current depth of workqueue."), func(m workqueue.Stats) float64 { return float64(m.Depth) })
	q.numbers.counter(describe("adds_total", "Total number of adds handled by workqueue."), func(m workqueue.Stats) uint64 { return m.Adds })
	q.numbers.counter(describe("retries_total", "Total number of retries handled by workqueue."), func(m workqueue.Stats) uint64 { return m.Retries })
	q.numbers.gauge(describe("unfinished_work_seconds", "How many seconds of work has been done that is in progress and has not been observed by work_duration."),
		func(m workqueue.Stats) float64 { return m.Unfinished.Seconds() })
	q.numbers.gauge(describe("longest_running_processor_seconds", "How many seconds the longest running processor of workqueue has been running."),
		func(m workqueue.Stats) float64 { return m.Longest.Seconds() })
	q.waited = describe("queue_duration_seconds", "How long in seconds an item stays in workqueue before being requested.")
	q.worked = describe("work_duration_seconds", "How long in seconds processing an item from workqueue takes.")
	return q
}
