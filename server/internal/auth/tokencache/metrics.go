package tokencache

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are kube-apiserver's metrics of its cache of tokens, which several Caches may
// share. It is safe for concurrent use; nil counts nothing.
type Metrics struct {
	hits, misses, accepted, refused prometheus.Counter
	hitTime, missTime               prometheus.Observer
	asking, waiting                 prometheus.Gauge

	collectors []prometheus.Collector
}

// NewMetrics returns Metrics at zero.
func NewMetrics() *Metrics {
	const prefix, label = "authentication_token_cache_", "status"
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "request_total", Help: "Requests with tokens that an issuer or a webhook judges, by whether the judgement was known (hit) or not (miss).",
	}, []string{label})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "request_duration_seconds", Help: "How long such requests waited for the judgement.",
	}, []string{label})
	fetches := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "fetch_total", Help: "Questions to an issuer or a webhook, by whether the token was accepted (ok) or not (error).",
	}, []string{label})
	active := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "active_fetch_count", Help: "Questions that are being asked (in_flight), and requests that wait for one of them (blocked).",
	}, []string{label})
	return &Metrics{
		hits: requests.WithLabelValues("hit"), misses: requests.WithLabelValues("miss"),
		hitTime: durations.WithLabelValues("hit"), missTime: durations.WithLabelValues("miss"),
		accepted: fetches.WithLabelValues("ok"), refused: fetches.WithLabelValues("error"),
		asking: active.WithLabelValues("in_flight"), waiting: active.WithLabelValues("blocked"),
		collectors: []prometheus.Collector{requests, durations, fetches, active},
	}
}

// Collectors returns the metrics.
func (m *Metrics) Collectors() []prometheus.Collector { return m.collectors }

// hit counts a request with a token that is remembered.
func (m *Metrics) hit(since time.Time) {
	if m != nil {
		m.hits.Inc()
		m.hitTime.Observe(time.Since(since).Seconds())
	}
}

// miss counts a request with a token that is not, and until answered is called, that it
// waits.
func (m *Metrics) miss(since time.Time) (answered func()) {
	if m == nil {
		return func() {}
	}
	m.misses.Inc()
	m.waiting.Inc()
	return func() {
		m.waiting.Dec()
		m.missTime.Observe(time.Since(since).Seconds())
	}
}

// fetch counts a question, and that it is being asked until answered is called.
func (m *Metrics) fetch() (answered func(err error)) {
	if m == nil {
		return func(error) {}
	}
	m.asking.Inc()
	return func(err error) {
		m.asking.Dec()
		if err == nil {
			m.accepted.Inc()
		} else {
			m.refused.Inc()
		}
	}
}
