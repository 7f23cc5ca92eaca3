package authorization

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// metrics count requests and impersonation, by kube-apiserver's names.
type metrics struct {
	requests                          *prometheus.CounterVec // by result
	requestDuration                   *prometheus.HistogramVec
	byResult                          [results]requestMetrics // of these two
	attempts, decisions               *prometheus.CounterVec  // by mode and decision
	attemptDuration, decisionDuration *prometheus.HistogramVec
}

// modeLegacy is what the metrics call the verb impersonate.
const modeLegacy = "legacy"

func newMetrics() *metrics {
	const prefix = "apiserver_impersonation_"
	labels := []string{"mode", "decision"}
	buckets := prometheus.ExponentialBuckets(.001, 2, 15)
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authorization_attempts_total", Help: "Requests, by what the authorizers have decided: allowed, denied, no-opinion (which is refused, too) or error.",
		}, []string{"result"}),
		requestDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "authorization_duration_seconds", Help: "How long that took.", Buckets: buckets,
		}, []string{"result"}),
		attempts:         counter("attempts_total", "Requests of users that act as others, by the mode that has allowed it; a refused one has none."),
		attemptDuration:  histogram("attempts_duration_seconds", "How long it took to decide whether a user may act as another one."),
		decisions:        counter("authorization_attempts_total", "Decisions about the rights that impersonation needs."),
		decisionDuration: histogram("authorization_attempts_duration_seconds", "How long such a decision took."),
	}
	for result, label := range resultLabels {
		m.byResult[result] = requestMetrics{m.requests.WithLabelValues(label), m.requestDuration.WithLabelValues(label)}
	}
	return m
}

// The results of the authorization of a request.
const (
	resultAllowed = iota
	resultDenied
	resultNoOpinion
	resultError
	results
)

var resultLabels = [results]string{resultAllowed: "allowed", resultDenied: "denied", resultNoOpinion: "no-opinion", resultError: "error"}

// requestMetrics are those of one result: looking them up by its label would cost more than to
// decide.
type requestMetrics struct {
	count    prometheus.Counter
	duration prometheus.Observer
}

// authorized counts the decision about a request.
func (m *metrics) authorized(decision auth.Decision, err error, since time.Time) {
	result := resultNoOpinion
	switch {
	case decision == auth.Allow:
		result = resultAllowed
	case err != nil:
		result = resultError
	case decision == auth.Deny:
		result = resultDenied
	}
	m.byResult[result].count.Inc()
	m.byResult[result].duration.Observe(time.Since(since).Seconds())
}

// Collectors returns the metrics of requests and of impersonation.
func (a *Authorizer) Collectors() []prometheus.Collector {
	m := a.metrics
	return []prometheus.Collector{m.requests, m.requestDuration, m.attempts, m.attemptDuration, m.decisions, m.decisionDuration}
}

// attempted counts a request that impersonates.
func (m *metrics) attempted(constraint string, since time.Time, err error) {
	mode := ""
	if err == nil {
		mode = modeOf(constraint)
	}
	m.attempts.WithLabelValues(mode, decisionLabel(err)).Inc()
	m.attemptDuration.WithLabelValues(mode, decisionLabel(err)).Observe(time.Since(since).Seconds())
}

// decided counts a decision about one right.
func (m *metrics) decided(verb string, since time.Time, err error) {
	mode := modeOf(verb)
	m.decisions.WithLabelValues(mode, decisionLabel(err)).Inc()
	m.decisionDuration.WithLabelValues(mode, decisionLabel(err)).Observe(time.Since(since).Seconds())
}

func decisionLabel(err error) string {
	if err == nil {
		return "allowed"
	}
	return "denied"
}

// modeOf returns the mode of a verb such as impersonate:user-info or
// impersonate-on:user-info:list.
func modeOf(verb string) string {
	_, mode, constrained := strings.Cut(verb, ":")
	if !constrained {
		return modeLegacy
	}
	mode, _, _ = strings.Cut(mode, ":")
	return mode
}
