package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Workqueue returns a collector of a work queue under the metric names of
// client-go, workqueue_depth and so on, with the labels name and controller, which
// are the same, and the depth by priority, as controller-runtime has them: for
// dashboards and alerts that know these. read is the queue's Stats method. Each
// queue of a registry needs a name of its own. [Controller] includes it for a
// controller's queue, and [Queue] has the same numbers and more under Levelwire's
// names.
func Workqueue(name string, read func() workqueue.Stats) prometheus.Collector {
	q := &queue{read: read}
	label := prometheus.Labels{"name": name, "controller": name}
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("workqueue_"+name, help, labels, label)
	}
	q.depths = &priorityDepths{desc: describe("depth", "Current depth of workqueue by workqueue and priority.", "priority"), shown: map[int]bool{0: true}}
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

// maxPriorities is how many priorities of a queue have a time series of their own, as
// in controller-runtime: a program may make priorities from numbers of its objects.
const maxPriorities = 25

// otherPriorities is the priority of the keys of all others.
const otherPriorities = "exceeded_cardinality_limit"

// priorityDepths shows the depths of a queue. A priority that was shown once stays,
// with 0 when no key of it waits, so that its time series has no gaps.
type priorityDepths struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	shown map[int]bool
	more  bool // there were others
}

func (d *priorityDepths) collect(out chan<- prometheus.Metric, now []workqueue.PriorityDepth) {
	d.mu.Lock()
	defer d.mu.Unlock()
	depths, others := map[int]int{}, 0
	for _, p := range now {
		switch {
		case d.shown[p.Priority]:
		case len(d.shown) < maxPriorities:
			d.shown[p.Priority] = true
		default:
			d.more = true
			others += p.Depth
			continue
		}
		depths[p.Priority] = p.Depth
	}
	for priority := range d.shown {
		out <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, float64(depths[priority]), strconv.Itoa(priority))
	}
	if d.more {
		out <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, float64(others), otherPriorities)
	}
}
