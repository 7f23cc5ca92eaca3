package metrics

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
)

// Metrics are the metrics of one server. Their names are those that dashboards for
// Kubernetes already query, where the meaning is the same.
type Metrics struct {
	// Rejected counts the requests that were too many at a time.
	Rejected prometheus.Counter
	// Watches are the open watches, Events what was sent on them; both by group,
	// version and resource.
	Watches *prometheus.GaugeVec
	Events  *prometheus.CounterVec
	// Encodes counts encodes by form; see CountEncode.
	Encodes *prometheus.CounterVec
	// Difference counts the answers to the difference protocol.
	Difference Difference

	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	// deprecated are the versions, of those that will go, that were asked for.
	deprecated *prometheus.GaugeVec
	// encodesOf holds the counters of encodes: looking them up by label costs
	// as much as a small encode.
	encodesOf map[string]prometheus.Counter
	// counted are the resources that have metrics.
	counted countedResources
}

// New returns metrics that nothing has been counted in, and the given collectors
// beside them.
func New(others ...prometheus.Collector) *Metrics {
	m := &Metrics{
		registry:   prometheus.NewRegistry(),
		encodesOf:  make(map[string]prometheus.Counter),
		Difference: newDifference(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and HTTP code.",
		}, []string{"verb", "group", "version", "resource", "subresource", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Time from the arrival of a request to the end of its answer, without watches.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"verb", "group", "version", "resource"}),
		Rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_dropped_requests_total", Help: "Requests refused with 429 because too many were in flight.",
		}),
		Watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests", Help: "Open watches.",
		}, []string{"group", "version", "resource"}),
		Events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total", Help: "Watch events sent, bookmarks included.",
		}, []string{"group", "version", "resource"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_response_bytes_total", Help: "Bytes of answers before compression by the client's protocol.",
		}, []string{"verb"}),
		deprecated: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_requested_deprecated_apis", Help: "1 for each deprecated version of a resource that was asked for, by the release without it if that is known.",
		}, []string{"group", "version", "resource", "subresource", "removed_release"}),
		Encodes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_encodes_total", Help: "Objects encoded into a form that was not cached yet.",
		}, []string{"form"}),
	}
	for _, form := range []string{"json", "protobuf", "cbor", "metadata", "metadata protobuf", "metadata cbor", "table row", "delta"} {
		m.encodesOf[form] = m.Encodes.WithLabelValues(form)
	}
	m.registry.MustRegister(m.requests, m.duration, m.Rejected, m.Watches, m.Events, m.bytes, m.deprecated, m.Encodes, m.Difference.results, m.Difference.objects,
		goCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(others...)
	return m
}

// goCollector returns the metrics of the Go runtime, with how long goroutines wait for a
// processor: what a busy server costs its clients first.
func goCollector() prometheus.Collector {
	latencies := collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/sched/latencies:seconds$`)}
	return collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(latencies))
}

// Register adds collectors.
func (m *Metrics) Register(others ...prometheus.Collector) { m.registry.MustRegister(others...) }

// Labels that clients choose are counted by these names, and all others as other:
// each name of its own costs memory for as long as the server runs.
var (
	methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace}
	subresources = []string{"", "status", "scale", "binding", "eviction", "token", "approval", "finalize", "ephemeralcontainers",
		"resize", "log", "exec", "attach", "portforward", "proxy"}
)

func knownOr(known []string, name string) string {
	if slices.Contains(known, name) {
		return name
	}
	return "other"
}

// Observe counts a request that has been answered.
func (m *Metrics) Observe(method string, record *request.Record, elapsed time.Duration) {
	code := strconv.Itoa(record.Code)
	q := record.Info
	if q == nil {
		m.requests.WithLabelValues(knownOr(methods, method), "", "", "", "", code).Inc()
		return
	}
	res := q.Resource
	m.note(res)
	m.requests.WithLabelValues(q.Verb, res.Group, res.Version, res.Plural, knownOr(subresources, q.Subresource), code).Inc()
	m.bytes.WithLabelValues(q.Verb).Add(float64(record.Written))
	if q.Verb != request.VerbWatch {
		m.duration.WithLabelValues(q.Verb, res.Group, res.Version, res.Plural).Observe(elapsed.Seconds())
	}
}

// RequestedDeprecated notes a request for a deprecated version of a resource.
func (m *Metrics) RequestedDeprecated(q *request.Info) {
	res := q.Resource
	m.deprecated.WithLabelValues(res.Group, res.Version, res.Plural, knownOr(subresources, q.Subresource), "").Set(1)
}

// Handler serves all metrics in the formats of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.gatherer(), promhttp.HandlerOpts{})
}

// CountEncode counts an object that was encoded into a form that was not cached yet.
func (m *Metrics) CountEncode(form string) { m.encodesOf[form].Inc() }
