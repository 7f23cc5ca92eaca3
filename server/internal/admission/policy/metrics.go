package policy

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/cel"
)

// metrics are those that kube-apiserver has, with its names and labels.
type metrics struct {
	validating, mutating                 *prometheus.CounterVec
	validatingDuration, mutatingDuration *prometheus.HistogramVec
}

// buckets are those of kube-apiserver.
var buckets = []float64{0.0000005, 0.001, 0.01, 0.1, 1}

func newMetrics() *metrics {
	both := func(kind, help string, labels ...string) (*prometheus.CounterVec, *prometheus.HistogramVec) {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_" + kind + "_admission_policy_check_total", Help: help + "."}, labels),
			prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: "apiserver_" + kind + "_admission_policy_check_duration_seconds", Help: help + ": how long they took.", Buckets: buckets,
			}, labels)
	}
	m := &metrics{}
	m.validating, m.validatingDuration = both("validating", "Validations of admission policies that failed or could not be evaluated", "policy", "policy_binding", "error_type", "enforcement_action")
	m.mutating, m.mutatingDuration = both("mutating", "Mutations of admission policies", "policy", "policy_binding", "error_type")
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.validating, m.validatingDuration, m.mutating, m.mutatingDuration}
}

// validated counts a validation. action is what followed from it: allow, deny, warn, audit.
func (m *metrics) validated(policy, binding string, failed error, action string, took time.Duration) {
	m.validating.WithLabelValues(policy, binding, errorType(failed), action).Inc()
	m.validatingDuration.WithLabelValues(policy, binding, errorType(failed), action).Observe(took.Seconds())
}

func (m *metrics) mutated(policy, binding string, failed error, took time.Duration) {
	kind := "no_error"
	if failed != nil {
		kind = errorType(failed)
	}
	m.mutating.WithLabelValues(policy, binding, kind).Inc()
	m.mutatingDuration.WithLabelValues(policy, binding, kind).Observe(took.Seconds())
}

// forget drops what was counted of policies or bindings that there are not any more: names come
// and go. left is how many there are.
func (p *Policies) forget(plural string, names []string, left int) {
	m, phase := p.metrics, "validate"
	of := []*prometheus.MetricVec{m.validating.MetricVec, m.validatingDuration.MetricVec}
	if strings.HasPrefix(plural, "mutating") {
		phase, of = "admit", []*prometheus.MetricVec{m.mutating.MetricVec, m.mutatingDuration.MetricVec}
	}
	label := "policy_binding"
	if !strings.HasSuffix(plural, "bindings") {
		label = "policy"
		p.conditions.Forget(names, "policy", phase, left)
	}
	expressions.Forget(names, left, func(name string) prometheus.Labels { return prometheus.Labels{label: name} }, of...)
}

// errNotTrue stands in metrics for a validation that is false.
var errNotTrue = errors.New("false")

func errorType(err error) string {
	switch compile := (*expressions.CompileError)(nil); {
	case errors.As(err, &compile):
		return "compile_error"
	case errors.Is(err, cel.ErrBudget):
		return "out_of_budget"
	}
	return "invalid_error"
}
