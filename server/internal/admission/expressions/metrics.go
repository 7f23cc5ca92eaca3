package expressions

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ConditionMetrics count the evaluations of match conditions. Names and labels are those of
// kube-apiserver.
type ConditionMetrics struct {
	errors, exclusions *prometheus.CounterVec
	durations          *prometheus.HistogramVec
}

// NewConditionMetrics returns ConditionMetrics. Webhooks and policies of a server share them.
func NewConditionMetrics() *ConditionMetrics {
	const prefix = "apiserver_admission_match_condition_"
	labels := []string{"name", "kind", "type", "operation"}
	return &ConditionMetrics{
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "evaluation_errors_total", Help: "Requests for which a match condition of a webhook or policy could not be evaluated.",
		}, labels),
		exclusions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "exclusions_total", Help: "Requests about which a webhook or policy was not asked because a match condition was false.",
		}, labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "evaluation_seconds", Help: "How long the match conditions of a webhook or policy took for a request.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25},
		}, labels),
	}
}

// Collectors returns the metrics.
func (m *ConditionMetrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.errors, m.exclusions, m.durations}
}

// Forget drops what was counted of webhooks or policies that there are not any more. left is how many there are.
func (m *ConditionMetrics) Forget(names []string, kind, of string, left int) {
	if m == nil {
		return
	}
	Forget(names, left, func(name string) prometheus.Labels { return prometheus.Labels{"name": name, "kind": kind, "type": of} },
		m.errors.MetricVec, m.exclusions.MetricVec, m.durations.MetricVec)
}

// maxLooks is how many names are looked at to find those that are forgotten: writes wait for that.
const maxLooks = 20_000

// Forget drops the metrics with the labels of some names, or all, if to find them among those that are left would take long.
func Forget(names []string, left int, labels func(name string) prometheus.Labels, from ...*prometheus.MetricVec) {
	if len(names)*(len(names)+left) > maxLooks {
		for _, vec := range from {
			vec.Reset()
		}
		return
	}
	for _, name := range names {
		for _, vec := range from {
			vec.DeletePartialMatch(labels(name))
		}
	}
}

func (m *ConditionMetrics) observe(of ConditionLabels, operation string, took time.Duration, matches bool, err error) {
	if m == nil {
		return
	}
	labels := []string{of.Name, of.Kind, of.Type, operation}
	m.durations.WithLabelValues(labels...).Observe(took.Seconds())
	switch {
	case err != nil:
		m.errors.WithLabelValues(labels...).Inc()
	case !matches:
		m.exclusions.WithLabelValues(labels...).Inc()
	}
}
