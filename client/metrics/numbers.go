package metrics

import "github.com/prometheus/client_golang/prometheus"

// number is one metric whose value is a field of S, a Stats type.
type number[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(S) float64
}

// numbers are the metrics of one Stats type, all with the same labels.
type numbers[S any] []number[S]

func (n *numbers[S]) gauge(desc *prometheus.Desc, value func(S) float64) {
	*n = append(*n, number[S]{desc, prometheus.GaugeValue, value})
}

func (n *numbers[S]) counter(desc *prometheus.Desc, value func(S) uint64) {
	n.total(desc, func(s S) float64 { return float64(value(s)) })
}

// total is counter for numbers that are not integers, such as seconds.
func (n *numbers[S]) total(desc *prometheus.Desc, value func(S) float64) {
	*n = append(*n, number[S]{desc, prometheus.CounterValue, value})
}

func (n numbers[S]) describe(out chan<- *prometheus.Desc) {
	for _, number := range n {
		out <- number.desc
	}
}

func (n numbers[S]) collect(out chan<- prometheus.Metric, stats S, labels ...string) {
	for _, number := range n {
		out <- prometheus.MustNewConstMetric(number.desc, number.kind, number.value(stats), labels...)
	}
}

// statsCollector exports the numbers of one client, elector or other thing. read is
// that thing's Stats method.
type statsCollector[S any] struct {
	read    func() S
	numbers numbers[S]
}

// Describe implements prometheus.Collector.
func (c *statsCollector[S]) Describe(out chan<- *prometheus.Desc) { c.numbers.describe(out) }

// Collect implements prometheus.Collector.
func (c *statsCollector[S]) Collect(out chan<- prometheus.Metric) { c.numbers.collect(out, c.read()) }
