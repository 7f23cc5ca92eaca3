package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
)

// metrics have the names and labels of kube-apiserver's.
type metrics struct {
	durations  *prometheus.HistogramVec
	requests   *prometheus.CounterVec
	rejections *prometheus.CounterVec
	failedOpen *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_admission_webhook_" + name, Help: help}, labels)
	}
	return &metrics{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_admission_webhook_admission_duration_seconds", Help: "How long calls of admission webhooks take.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25},
		}, []string{"name", "type", "operation", "rejected"}),
		requests:   counter("request_total", "Calls of admission webhooks.", "name", "type", "operation", "code", "rejected"),
		rejections: counter("rejection_count", "Requests that admission webhooks have refused, or that were refused because one could not be called.", "name", "type", "operation", "error_type", "rejection_code"),
		failedOpen: counter("fail_open_count", "Requests that went on although a webhook could not be called.", "name", "type"),
	}
}

func (m *metrics) observe(name, kind, operation string, began time.Time, rejected bool, code int) {
	m.durations.WithLabelValues(name, kind, operation, strconv.FormatBool(rejected)).Observe(time.Since(began).Seconds())
	m.requests.WithLabelValues(name, kind, operation, strconv.Itoa(min(code, maxCode)), strconv.FormatBool(rejected)).Inc()
}

// forget drops what was counted of webhooks that are not configured any more: names come and go. left is how many are.
func (m *metrics) forget(names []string, kind string, left int) {
	expressions.Forget(names, left, func(name string) prometheus.Labels { return prometheus.Labels{"name": name, "type": kind} },
		m.durations.MetricVec, m.requests.MetricVec, m.rejections.MetricVec, m.failedOpen.MetricVec)
}

// maxCode bounds the codes with which a webhook can have requests refused.
const maxCode = 600

// Collectors returns the metrics of the calls.
func (p *Plugin) Collectors() []prometheus.Collector {
	m := p.metrics
	return []prometheus.Collector{m.durations, m.requests, m.rejections, m.failedOpen}
}
