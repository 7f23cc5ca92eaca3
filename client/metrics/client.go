package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client"
)

// Client returns a collector of what a client.Client counts beside its requests, for
// which there is [Requests]: watches, waiting, rotated credentials. read is its Stats
// method; each client of a registry needs a name of its own.
func Client(name string, read func() client.Stats) prometheus.Collector {
	c := &statsCollector[client.Stats]{read: read}
	describe := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc("levelwire_client_"+metric, help, nil, prometheus.Labels{"client": name})
	}
	c.numbers.gauge(describe("active_watches", "Watches that are open."),
		func(s client.Stats) float64 { return float64(s.ActiveWatches) })
	c.numbers.total(describe("sent_bytes_total", "Bytes of the bodies of requests."),
		func(s client.Stats) float64 { return float64(s.BytesSent) })
	c.numbers.total(describe("received_bytes_total", "Bytes of the bodies of answers, after decompression, while they arrive."),
		func(s client.Stats) float64 { return float64(s.BytesReceived) })
	c.numbers.total(describe("retry_wait_seconds_total", "For how long requests waited because the server asked for that, all added up."),
		func(s client.Stats) float64 { return s.RetryWait.Seconds() })
	c.numbers.total(describe("limiter_wait_seconds_total", "For how long requests waited for the client's rate limiter, all added up."),
		func(s client.Stats) float64 { return s.LimiterWait.Seconds() })
	c.numbers.total(describe("credential_reloads_total", "How often rotated certificates or CAs were put to use."),
		func(s client.Stats) float64 { return float64(s.CredentialReloads) })
	c.numbers.total(describe("credential_reload_errors_total", "How often changed certificates or CAs could not be read."),
		func(s client.Stats) float64 { return float64(s.CredentialReloadErrors) })
	c.numbers.total(describe("panics_total", "Calls of the program's observer, rate limiter and handlers of warnings that panicked."),
		func(s client.Stats) float64 { return float64(s.Panics) })
	c.numbers.gauge(describe("protobuf_refused", "Resources for which JSON is used because the server refuses protobuf."),
		func(s client.Stats) float64 { return float64(len(s.ProtobufRefused)) })
	return c
}
