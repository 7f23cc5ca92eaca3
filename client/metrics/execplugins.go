package metrics

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientgo "k8s.io/client-go/tools/metrics"
)

// ExecPlugins returns the collector of exec plugins, the programs that a kubeconfig
// names for credentials: rest_client_exec_plugin_call_total,
// rest_client_exec_plugin_ttl_seconds and
// rest_client_exec_plugin_certificate_rotation_age, as client-go has them. They are
// client-go's own and of the whole process, so all calls return the same collector.
// Call it before the first client is made. It shows nothing in a program that has
// given client-go other metrics before.
func ExecPlugins() prometheus.Collector { return execPluginsOnce() }

var execPluginsOnce = sync.OnceValue(func() *execPlugins {
	p := &execPlugins{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_exec_plugin_call_total",
			Help: "Number of calls to an exec plugin, partitioned by exit code and call status (no_error, plugin_execution_error, plugin_not_found_error, client_internal_error).",
		}, []string{"code", "call_status"}),
		rotationAge: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "rest_client_exec_plugin_certificate_rotation_age",
			Help: "How many seconds the last client certificate of an exec plugin lived before it was rotated.",
			Buckets: []float64{600, 1800, 3600, 14400, 86400, 604800, // 10 minutes to a week
				2592000, 7776000, 15552000, 31104000, 124416000}, // 30 days to 4 years
		}),
	}
	p.ttl = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rest_client_exec_plugin_ttl_seconds",
		Help: "The seconds until the first client certificate of an exec plugin expires, negative if it has; +Inf if there is none.",
	}, p.untilExpiry)
	clientgo.Register(clientgo.RegisterOpts{ClientCertExpiry: p, ClientCertRotationAge: rotationAge{p}, ExecPluginCalls: p})
	return p
})

// execPlugins is what client-go reports about exec plugins.
type execPlugins struct {
	calls       *prometheus.CounterVec
	rotationAge prometheus.Histogram
	ttl         prometheus.GaugeFunc

	mu     sync.Mutex
	expiry *time.Time // nil: there is no certificate
}

func (p *execPlugins) untilExpiry() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expiry == nil {
		return math.Inf(1)
	}
	return time.Until(*p.expiry).Seconds()
}

// Set implements client-go's ExpiryMetric.
func (p *execPlugins) Set(expiry *time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expiry = expiry
}

// Increment implements client-go's CallsMetric.
func (p *execPlugins) Increment(exitCode int, callStatus string) {
	p.calls.WithLabelValues(strconv.Itoa(exitCode), callStatus).Inc()
}

// rotationAge is client-go's DurationMetric.
type rotationAge struct{ *execPlugins }

func (a rotationAge) Observe(age time.Duration) { a.rotationAge.Observe(age.Seconds()) }

// Describe implements prometheus.Collector.
func (p *execPlugins) Describe(out chan<- *prometheus.Desc) {
	p.calls.Describe(out)
	p.rotationAge.Describe(out)
	p.ttl.Describe(out)
}

// Collect implements prometheus.Collector.
func (p *execPlugins) Collect(out chan<- prometheus.Metric) {
	p.calls.Collect(out)
	p.rotationAge.Collect(out)
	p.ttl.Collect(out)
}
