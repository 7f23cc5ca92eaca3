package flowcontrol

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
)

// The metrics have the names and labels that kube-apiserver gives them.
var (
	levelLabels  = []string{"priority_level"}
	schemaLabels = []string{"priority_level", "flow_schema"}

	nominalLimit = desc("nominal_limit_seats", "Seats of the priority level by its shares.", levelLabels)
	lowerLimit   = desc("lower_limit_seats", "Seats of the priority level that it does not lend.", levelLabels)
	upperLimit   = desc("upper_limit_seats", "Seats that the priority level may have, with borrowed ones.", levelLabels)
	currentLimit = desc("current_limit_seats", "Seats that the priority level could use at this moment.", levelLabels)

	executing      = desc("current_executing_requests", "Requests that hold seats.", schemaLabels)
	executingSeats = desc("current_executing_seats", "Seats that requests hold.", schemaLabels)
	inQueue        = desc("current_inqueue_requests", "Requests that wait for seats.", schemaLabels)
	inQueueSeats   = desc("current_inqueue_seats", "Seats that requests wait for.", schemaLabels)
	dispatched     = desc("dispatched_requests_total", "Requests that have got their seats.", schemaLabels)
	rejected       = desc("rejected_requests_total", "Requests that were refused, by the reason.", []string{"priority_level", "flow_schema", "reason"})
	waitDuration   = desc("request_wait_duration_seconds", "For how long requests have waited for their seats; execute says whether they got them.", []string{"priority_level", "flow_schema", "execute"})
)

func desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("apiserver_flowcontrol_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		nominalLimit, lowerLimit, upperLimit, currentLimit,
		executing, executingSeats, inQueue, inQueueSeats, dispatched, rejected, waitDuration,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	for _, level := range c.seats.Stats(false) {
		gauge := func(d *prometheus.Desc, value int64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), level.Name)
		}
		gauge(nominalLimit, level.Nominal)
		gauge(lowerLimit, level.Lower)
		if !level.Exempt {
			gauge(upperLimit, level.Upper)
			gauge(currentLimit, level.Current)
		}
		for i := range level.Schemas {
			collectSchema(ch, level.Name, &level.Schemas[i])
		}
	}
}

func collectSchema(ch chan<- prometheus.Metric, level string, s *fairqueue.SchemaStats) {
	gauge := func(d *prometheus.Desc, value int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), level, s.Name)
	}
	gauge(executing, int64(s.Executing))
	gauge(executingSeats, s.ExecutingSeats)
	gauge(inQueue, int64(s.Waiting))
	gauge(inQueueSeats, s.WaitingSeats)
	ch <- prometheus.MustNewConstMetric(dispatched, prometheus.CounterValue, float64(s.Dispatched), level, s.Name)
	for reason, count := range map[string]uint64{
		"queue-full": s.Rejected.QueueFull, "concurrency-limit": s.Rejected.ConcurrencyLimit,
		"time-out": s.Rejected.Timeout, "cancelled": s.Rejected.Cancelled,
	} {
		if count > 0 {
			ch <- prometheus.MustNewConstMetric(rejected, prometheus.CounterValue, float64(count), level, s.Name, reason)
		}
	}
	for execute, waits := range map[string]fairqueue.Waits{"true": s.Waits, "false": s.WaitsInVain} {
		if waits.Count == 0 {
			continue
		}
		buckets := make(map[float64]uint64, len(waits.Counts))
		for i, count := range waits.Counts {
			buckets[fairqueue.WaitBuckets[i]] = count
		}
		ch <- prometheus.MustNewConstHistogram(waitDuration, waits.Count, waits.Seconds, buckets, level, s.Name, execute)
	}
}
