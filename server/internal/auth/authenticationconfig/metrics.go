package authenticationconfig

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are kube-apiserver's metrics of the issuers' tokens. It is safe for concurrent use; nil
// counts nothing.
type Metrics struct {
	latency *prometheus.HistogramVec
}

// NewMetrics returns Metrics at zero.
func NewMetrics() *Metrics {
	return &Metrics{latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "apiserver_authentication_jwt_authenticator_latency_seconds",
		Help:    "How long it took to examine a token that was not remembered, by whether it was accepted (success) or not (failure).",
		Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"result", "jwt_issuer_hash"})}
}

// Collectors returns the metrics.
func (m *Metrics) Collectors() []prometheus.Collector { return []prometheus.Collector{m.latency} }

// examined counts a token of an issuer.
func (m *Metrics) examined(issuer string, since time.Time, err error) {
	if m == nil {
		return
	}
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.latency.WithLabelValues(result, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(issuer)))).Observe(time.Since(since).Seconds())
}
