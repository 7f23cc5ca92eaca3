package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/workqueue"
)

// ControllerStats is what [Controller] reads: any controller.TypedController.
type ControllerStats interface {
	Name() string
	Stats() controller.Stats
}

// Controller returns a collector of one controller, under its name: with the
// metric names of controller-runtime, controller_runtime_reconcile_total and so
// on, the queue's as [Workqueue] has them, and levelwire_controller_* for what
// neither has. Each controller of a registry needs a name of its own.
func Controller(c ControllerStats) prometheus.Collector {
	label := prometheus.Labels{"controller": c.Name()}
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, label)
	}
	m := &controllerMetrics{
		of:      c,
		queue:   Workqueue(c.Name(), func() workqueue.Stats { return c.Stats().Queue }),
		results: describe("controller_runtime_reconcile_total", "Total number of reconciliations per controller.", "result"),
		took:    describe("controller_runtime_reconcile_time_seconds", "Length of time per reconciliation per controller."),
		waited:  describe("levelwire_controller_wait_seconds", "Time until informers that were behind the others had caught up, once for all keys that waited for them together."),
	}
	m.numbers.counter(describe("controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller."), func(s controller.Stats) uint64 { return s.Failures })
	m.numbers.counter(describe("controller_runtime_terminal_reconcile_errors_total", "Total number of terminal reconciliation errors per controller."), func(s controller.Stats) uint64 { return s.TerminalErrors })
	m.numbers.counter(describe("controller_runtime_reconcile_panics_total", "Total number of reconciliation panics per controller."), func(s controller.Stats) uint64 { return s.Panics })
	m.numbers.counter(describe("controller_runtime_reconcile_timeouts_total", "Total number of reconciliation timeouts per controller."), func(s controller.Stats) uint64 { return s.Timeouts })
	m.numbers.gauge(describe("controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles per controller."), func(s controller.Stats) float64 { return float64(s.Workers) })
	m.numbers.gauge(describe("controller_runtime_active_workers", "Number of currently used workers per controller."), func(s controller.Stats) float64 { return float64(s.Active) })
	m.numbers.counter(describe("levelwire_controller_conflicts_total", "Calls that lost a race against another writer; they are errors, too."), func(s controller.Stats) uint64 { return s.Conflicts })
	m.numbers.counter(describe("levelwire_controller_put_offs_total", "Calls that were put off because an informer was behind the others (controller.Consistent); they are no errors."), func(s controller.Stats) uint64 { return s.PutOffs })
	m.numbers.gauge(describe("levelwire_controller_keys_put_off", "Keys that wait for an informer that is behind the others."), func(s controller.Stats) float64 { return float64(s.KeysPutOff) })
	m.numbers.counter(describe("levelwire_controller_rate_limiter_panics_total", "Calls of the rate limiter that panicked; the key had an exponential back-off instead."), func(s controller.Stats) uint64 { return s.Queue.Panics })
	m.numbers.gauge(describe("levelwire_controller_synced", "1 once everything that the controller watches has been listed."), func(s controller.Stats) float64 { return truth(s.Synced) })
	return m
}

type controllerMetrics struct {
	of                    ControllerStats
	queue                 prometheus.Collector
	numbers               numbers[controller.Stats]
	results, took, waited *prometheus.Desc
}

var callBounds = controller.BucketBounds()

// Describe implements prometheus.Collector.
func (m *controllerMetrics) Describe(out chan<- *prometheus.Desc) {
	m.numbers.describe(out)
	out <- m.results
	out <- m.took
	out <- m.waited
	m.queue.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *controllerMetrics) Collect(out chan<- prometheus.Metric) {
	s := m.of.Stats()
	m.numbers.collect(out, s)
	// controller-runtime counts as requeue what it calls again without a time and without
	// an error. Here that is what Consistent has put off.
	for result, calls := range map[string]uint64{"success": s.Successes, "requeue_after": s.Requeues, "requeue": s.PutOffs, "error": s.Failures} {
		out <- prometheus.MustNewConstMetric(m.results, prometheus.CounterValue, float64(calls), result)
	}
	out <- histogram(m.took, callBounds[:], s.TookWithin[:], s.Took)
	out <- histogram(m.waited, callBounds[:], s.WaitedWithin[:], s.Waited)
	m.queue.Collect(out)
}
