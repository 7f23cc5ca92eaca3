package apiserver

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
)

// metrics is the server's own prometheus registry. Names are those that
// dashboards for Kubernetes already query, where the meaning is the same.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	rejected prometheus.Counter
	watches  *prometheus.GaugeVec
	events   *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	encodes  *prometheus.CounterVec
	// encodesOf holds the counters of encodes: looking them up by label costs
	// as much as a small encode.
	encodesOf  map[string]prometheus.Counter
	difference differenceMetrics
}

func newMetrics() *metrics {
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		encodesOf:  make(map[string]prometheus.Counter),
		difference: newDifferenceMetrics(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and HTTP code.",
		}, []string{"verb", "group", "version", "resource", "subresource", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Time from a request's arrival to the end of its answer, watches apart.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"verb", "group", "version", "resource"}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_dropped_requests_total", Help: "Requests refused with 429 because too many were in flight.",
		}),
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests", Help: "Open watches.",
		}, []string{"group", "version", "resource"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total", Help: "Watch events sent, bookmarks included.",
		}, []string{"group", "version", "resource"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_response_bytes_total", Help: "Bytes of answers before compression by the client's protocol.",
		}, []string{"verb"}),
		encodes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_encodes_total", Help: "Objects encoded into a form that was not cached yet.",
		}, []string{"form"}),
	}
	for _, form := range []string{"json", "protobuf", "cbor", "metadata", "metadata protobuf", "metadata cbor", "table row"} {
		m.encodesOf[form] = m.encodes.WithLabelValues(form)
	}
	m.registry.MustRegister(m.requests, m.duration, m.rejected, m.watches, m.events, m.bytes, m.encodes, m.difference.results, m.difference.objects,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(r *http.Request, record *request.Record, elapsed time.Duration) {
	code := strconv.Itoa(record.Code)
	q := record.Info
	if q == nil {
		m.requests.WithLabelValues(r.Method, "", "", "", "", code).Inc()
		return
	}
	res := q.Resource
	m.requests.WithLabelValues(q.Verb, res.Group, res.Version, res.Plural, q.Subresource, code).Inc()
	m.bytes.WithLabelValues(q.Verb).Add(float64(record.Written))
	if q.Verb != request.VerbWatch {
		m.duration.WithLabelValues(q.Verb, res.Group, res.Version, res.Plural).Observe(elapsed.Seconds())
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) countEncode(form string) { m.encodesOf[form].Inc() }
