package authentication

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are kube-apiserver's metrics of authentication.
type metrics struct {
	users    *prometheus.CounterVec
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
	// remaining is for how long the client certificates of requests are still valid.
	remaining prometheus.Histogram
}

// result is what has become of a request's credentials, as a label.
type result string

const (
	succeeded result = "success"
	unknown   result = "failure" // no authenticator knows credentials of that kind, or there are none
	refused   result = "error"   // one knows them, and refuses them or cannot judge them
)

func newMetrics() metrics {
	return metrics{
		users: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authenticated_user_requests", Help: "Authenticated requests, by the kind of their user.",
		}, []string{"username"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "authentication_attempts", Help: "Requests, by whether their user was authenticated: success, failure (no known credentials) or error.",
		}, []string{"result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "authentication_duration_seconds", Help: "How long that took.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"result"}),
		remaining: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "apiserver_client_certificate_expiration_seconds", Help: "For how long the client certificate of a request is still valid.",
			Buckets: []float64{0, 30 * minute, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, 30 * day, 90 * day, 180 * day, 360 * day},
		}),
	}
}

// The lengths of time that kube-apiserver's buckets of remaining validity have, in seconds.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

func (m *metrics) count(r result, user string, took time.Duration) {
	if r == succeeded {
		m.users.WithLabelValues(kindOfUser(user)).Inc()
	}
	m.attempts.WithLabelValues(string(r)).Inc()
	m.duration.WithLabelValues(string(r)).Observe(took.Seconds())
}

// kindOfUser returns one of a few labels, Kubernetes' own, so that users cannot make any
// number of them, and their names do not get into the metrics.
func kindOfUser(name string) string {
	switch name {
	case "admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default":
		return name
	}
	if strings.Contains(name, "@") {
		return "email_id"
	}
	return "other"
}

// Collectors returns the metrics of authentication.
func (a *Authenticator) Collectors() []prometheus.Collector {
	return []prometheus.Collector{a.metrics.users, a.metrics.attempts, a.metrics.duration, a.metrics.remaining}
}
