package audit

import "github.com/prometheus/client_golang/prometheus"

// metrics have Kubernetes' names.
type metrics struct {
	events, rejected prometheus.Counter
	lost             *prometheus.CounterVec // by plugin: what has lost it
	levels           *prometheus.CounterVec
}

// The values of the label plugin, as Kubernetes has them.
const (
	pluginBuffered = "buffered" // the queue was full
	pluginTruncate = "truncate" // too large even without objects
	pluginLog      = "log"
	pluginWebhook  = "webhook"
)

func newMetrics() *metrics {
	m := &metrics{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_event_total", Help: "Audit events handed to the backends.",
		}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_requests_rejected_total", Help: "Requests refused because their first event could not be stored, in the mode blocking-strict.",
		}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_audit_error_total", Help: "Audit events that were lost, by what has lost them.",
		}, []string{"plugin"}),
		levels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_audit_level_total", Help: "Requests by the level at which the policy audits them.",
		}, []string{"level"}),
	}
	for _, plugin := range []string{pluginBuffered, pluginTruncate, pluginLog, pluginWebhook} {
		m.lost.WithLabelValues(plugin) // so that alerts find a 0
	}
	return m
}

// Collectors returns the metrics; none of a nil Auditor.
func (a *Auditor) Collectors() []prometheus.Collector {
	if a == nil {
		return nil
	}
	return []prometheus.Collector{a.metrics.events, a.metrics.rejected, a.metrics.lost, a.metrics.levels}
}
