package metrics

import (
	"net/url"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client"
)

// Requests counts the requests of clients under the metric names of client-go,
// rest_client_requests_total and so on. It is a prometheus.Collector and a
// client.Observer: one serves all clients of a program, which differ by host.
//
//	requests := metrics.NewRequests()
//	registry.MustRegister(requests)
//	c, err := client.New(cfg, client.Options{Observer: requests})
//
// As in client-go, the label verb is the HTTP method, and a watch counts as a
// request but has no duration and no size of its answer.
type Requests struct {
	requests, retries              *prometheus.CounterVec
	duration, limited, sent, taken *prometheus.HistogramVec
	lookups                        *prometheus.HistogramVec
}

var _ client.Observer = (*Requests)(nil)

// NewRequests returns a Requests that has counted nothing.
func NewRequests() *Requests {
	seconds := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
	bytes := []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rest_client_" + name, Help: help, Buckets: buckets}, labels)
	}
	return &Requests{
		requests: counter("requests_total", "Number of HTTP requests, partitioned by status code, method, and host.", "code", "method", "host"),
		retries:  counter("request_retries_total", "Number of request retries, partitioned by status code, verb, and host.", "code", "verb", "host"),
		duration: histogram("request_duration_seconds", "Request latency in seconds. Broken down by verb, and host.", seconds, "verb", "host"),
		limited:  histogram("rate_limiter_duration_seconds", "Client side rate limiter latency in seconds. Broken down by verb, and host.", seconds, "verb", "host"),
		sent:     histogram("request_size_bytes", "Request size in bytes. Broken down by verb and host.", bytes, "verb", "host"),
		taken:    histogram("response_size_bytes", "Response size in bytes. Broken down by verb and host.", bytes, "verb", "host"),
		lookups:  histogram("dns_resolution_duration_seconds", "DNS resolver latency in seconds. Broken down by host.", seconds[:11], "host"),
	}
}

// AttemptDone implements client.Observer.
func (r *Requests) AttemptDone(info client.AttemptInfo) {
	code := "<error>" // client-go's word for a request without an answer
	if info.Code != 0 {
		code = strconv.Itoa(info.Code)
	}
	r.requests.WithLabelValues(code, info.Method, info.Host).Inc()
	if info.Number > 1 {
		r.retries.WithLabelValues(code, info.Method, info.Host).Inc()
	}
	r.limited.WithLabelValues(info.Method, info.Host).Observe(info.LimiterWait.Seconds())
	if info.Lookup > 0 {
		r.lookups.WithLabelValues(hostname(info.Host)).Observe(info.Lookup.Seconds())
	}
	if info.Sent > 0 {
		r.sent.WithLabelValues(info.Method, info.Host).Observe(float64(info.Sent))
	}
}

// hostname is what is looked up: the host without its port.
func hostname(host string) string {
	u := url.URL{Host: host}
	return u.Hostname()
}

// RequestDone implements client.Observer.
func (r *Requests) RequestDone(info client.RequestInfo) {
	if info.Verb == "watch" {
		return
	}
	r.duration.WithLabelValues(info.Method, info.Host).Observe(info.Duration.Seconds())
	if info.Code != 0 {
		r.taken.WithLabelValues(info.Method, info.Host).Observe(float64(info.Received))
	}
}

// Describe implements prometheus.Collector.
func (r *Requests) Describe(out chan<- *prometheus.Desc) {
	for _, c := range r.collectors() {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (r *Requests) Collect(out chan<- prometheus.Metric) {
	for _, c := range r.collectors() {
		c.Collect(out)
	}
}

func (r *Requests) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.requests, r.retries, r.duration, r.limited, r.sent, r.taken, r.lookups}
}
