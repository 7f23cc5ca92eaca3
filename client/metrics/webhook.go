package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/webhook"
)

var (
	webhookBounds   = webhook.BucketBounds()
	webhookRequests = prometheus.NewDesc("controller_runtime_webhook_requests_total", "Total number of admission requests by HTTP status code.", []string{"webhook", "code"}, nil)
	webhookLatency  = prometheus.NewDesc("controller_runtime_webhook_latency_seconds", "Histogram of the latency of processing admission requests.", []string{"webhook"}, nil)
	webhookPanics   = prometheus.NewDesc("controller_runtime_webhook_panics_total", "Total number of webhook panics.", []string{"webhook"}, nil)
	webhookInFlight = prometheus.NewDesc("controller_runtime_webhook_requests_in_flight", "Current number of admission requests being served.", []string{"webhook"}, nil)
)

// Webhooks returns a collector of the webhooks of a server, by path, under the
// metric names of controller-runtime, and read is the server's Stats method. Codes
// are 200 for reviews that were answered, 400 for what could not be read or had
// no room, and 500 for what failed. A registry has one.
func Webhooks(read func() []webhook.Stats) prometheus.Collector { return webhooks(read) }

type webhooks func() []webhook.Stats

// Describe implements prometheus.Collector.
func (webhooks) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{webhookRequests, webhookLatency, webhookPanics, webhookInFlight} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (w webhooks) Collect(out chan<- prometheus.Metric) {
	for _, s := range w() {
		for code, n := range map[string]uint64{"200": s.Succeeded, "400": s.Rejected, "500": s.Failed} {
			out <- prometheus.MustNewConstMetric(webhookRequests, prometheus.CounterValue, float64(n), s.Path, code)
		}
		out <- prometheus.MustNewConstMetric(webhookPanics, prometheus.CounterValue, float64(s.Panics), s.Path)
		out <- prometheus.MustNewConstMetric(webhookInFlight, prometheus.GaugeValue, float64(s.InFlight), s.Path)
		out <- histogram(webhookLatency, webhookBounds[:], s.TookWithin[:], s.Took, s.Path)
	}
}

// Certificates returns a collector of the certificate files of a webhook server
// under the metric names of controller-runtime: certwatcher_read_certificate_total
// and certwatcher_read_certificate_errors_total. read is the server's
// CertificateStats method. A registry has one.
func Certificates(read func() webhook.CertificateStats) prometheus.Collector {
	c := &statsCollector[webhook.CertificateStats]{read: read}
	c.numbers.counter(prometheus.NewDesc("certwatcher_read_certificate_total", "Total number of certificate reads.", nil, nil),
		func(s webhook.CertificateStats) uint64 { return s.Reads })
	c.numbers.counter(prometheus.NewDesc("certwatcher_read_certificate_errors_total", "Total number of certificate read errors.", nil, nil),
		func(s webhook.CertificateStats) uint64 { return s.Errors })
	return c
}
