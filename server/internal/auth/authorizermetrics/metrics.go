// Package authorizermetrics counts what the authorizers of a server decide, by
// kube-apiserver's metrics (https://kubernetes.io/docs/reference/instrumentation/metrics/).
package authorizermetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Metrics are the metrics of all authorizers of a server. They are safe for concurrent use.
// For authorizers of the type Webhook, they implement the interface AuthorizerMetrics of
// k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics.
type Metrics struct {
	decisions                   *prometheus.CounterVec
	evaluations, failOpen       *prometheus.CounterVec
	duration                    *prometheus.HistogramVec
	conditionErrors, exclusions *prometheus.CounterVec
	conditionDuration           *prometheus.HistogramVec
}

// New returns Metrics at zero.
func New() *Metrics {
	const prefix = "apiserver_authorization_"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	return &Metrics{
		decisions:   counter("decisions_total", "Requests that an authorizer has allowed or denied, so that no further one was asked.", "type", "name", "decision"),
		evaluations: counter("webhook_evaluations_total", "Questions to authorization webhooks, by how they ended: success, error, timeout or canceled.", "name", "result"),
		failOpen:    counter("webhook_evaluations_fail_open_total", "Questions that a webhook has not answered, and that were left to the other authorizers.", "name", "result"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "webhook_duration_seconds", Help: "How long questions to authorization webhooks took.",
		}, []string{"name", "result"}),
		conditionErrors: counter("match_condition_evaluation_errors_total", "Questions for which a condition of a webhook could not be evaluated.", "type", "name"),
		exclusions:      counter("match_condition_exclusions_total", "Questions that a webhook was not asked because a condition was false.", "type", "name"),
		conditionDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "match_condition_evaluation_seconds", Help: "How long the conditions of a webhook took for a question.",
			Buckets: []float64{.001, .005, .01, .025, .1, .2, .25},
		}, []string{"type", "name"}),
	}
}

// Collectors returns the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.decisions, m.evaluations, m.failOpen, m.duration, m.conditionErrors, m.exclusions, m.conditionDuration}
}

// Counted returns an authorizer that decides as another one does, and counts what it allows
// and denies. What it has no opinion about is not counted: another one decides.
func (m *Metrics) Counted(authorizerType, name string, a auth.Authorizer) auth.Authorizer {
	return &counted{
		inner:   a,
		allowed: m.decisions.WithLabelValues(authorizerType, name, "allowed"),
		denied:  m.decisions.WithLabelValues(authorizerType, name, "denied"),
	}
}

// counted implements auth.Authorizer, auth.RuleLister and auth.ChangeNotifier.
type counted struct {
	inner           auth.Authorizer
	allowed, denied prometheus.Counter
}

// Authorize implements auth.Authorizer.
func (c *counted) Authorize(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	decision, reason, err := c.inner.Authorize(ctx, a)
	switch decision {
	case auth.Allow:
		c.allowed.Inc()
	case auth.Deny:
		c.denied.Inc()
	}
	return decision, reason, err
}

// Rules implements auth.RuleLister.
func (c *counted) Rules(ctx context.Context, user auth.User, namespace string) auth.Rules {
	return auth.AuthorizerUnion{c.inner}.Rules(ctx, user, namespace)
}

// OnChange implements auth.ChangeNotifier.
func (c *counted) OnChange(changed func(user string)) (stop func()) {
	return auth.OnChange(changed, c.inner)
}

// RecordRequestTotal does nothing: kube-apiserver has this metric in servers that delegate
// all decisions to another one.
func (*Metrics) RecordRequestTotal(context.Context, string) {}

// RecordRequestLatency does nothing, as RecordRequestTotal.
func (*Metrics) RecordRequestLatency(context.Context, string, float64) {}

// RecordWebhookEvaluation counts a question to a webhook.
func (m *Metrics) RecordWebhookEvaluation(_ context.Context, name, result string) {
	m.evaluations.WithLabelValues(name, result).Inc()
}

// RecordWebhookDuration observes how many seconds it took.
func (m *Metrics) RecordWebhookDuration(_ context.Context, name, result string, seconds float64) {
	m.duration.WithLabelValues(name, result).Observe(seconds)
}

// RecordWebhookFailOpen counts a question that is left to other authorizers, because the
// webhook did not answer.
func (m *Metrics) RecordWebhookFailOpen(_ context.Context, name, result string) {
	m.failOpen.WithLabelValues(name, result).Inc()
}

// RecordAuthorizationMatchConditionEvaluation observes how long the conditions took.
func (m *Metrics) RecordAuthorizationMatchConditionEvaluation(_ context.Context, authorizerType, name string, elapsed time.Duration) {
	m.conditionDuration.WithLabelValues(authorizerType, name).Observe(elapsed.Seconds())
}

// RecordAuthorizationMatchConditionEvaluationFailure counts a condition that failed.
func (m *Metrics) RecordAuthorizationMatchConditionEvaluationFailure(_ context.Context, authorizerType, name string) {
	m.conditionErrors.WithLabelValues(authorizerType, name).Inc()
}

// RecordAuthorizationMatchConditionExclusion counts a condition that was false.
func (m *Metrics) RecordAuthorizationMatchConditionExclusion(_ context.Context, authorizerType, name string) {
	m.exclusions.WithLabelValues(authorizerType, name).Inc()
}
