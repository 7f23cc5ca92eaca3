package filewatch

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ConfigCollectors are the metrics that Kubernetes has of a configuration which it reads
// again, under the names that begin with apiserver_KIND_config_controller.
func ConfigCollectors(kind string, stats func() Stats) []prometheus.Collector {
	name := "apiserver_" + kind + "_config_controller_automatic_reload"
	byStatus := func(status string, count func(Stats) int, last func(Stats) time.Time) []prometheus.Collector {
		labels := prometheus.Labels{"status": status}
		return []prometheus.Collector{
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: name + "s_total", ConstLabels: labels,
				Help: "Times that the changed " + kind + " configuration was read again.",
			}, func() float64 { return float64(count(stats())) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: name + "_last_timestamp_seconds", ConstLabels: labels,
				Help: "When the changed " + kind + " configuration was last read again, as seconds since 1970; 0: never.",
			}, func() float64 {
				if at := last(stats()); !at.IsZero() {
					return float64(at.UnixMilli()) / 1e3
				}
				return 0
			}),
		}
	}
	return slices.Concat(
		[]prometheus.Collector{configInfo{
			desc:  prometheus.NewDesc("apiserver_"+kind+"_config_controller_last_config_info", "The "+kind+" configuration in force, by its hash.", []string{"hash"}, nil),
			stats: stats,
		}},
		byStatus("success", func(s Stats) int { return s.Succeeded }, func(s Stats) time.Time { return s.LastSuccess }),
		byStatus("failure", func(s Stats) int { return s.Failed }, func(s Stats) time.Time { return s.LastFailure }))
}

// configInfo is a metric whose label has the hash of what is in force.
type configInfo struct {
	desc  *prometheus.Desc
	stats func() Stats
}

// Describe implements prometheus.Collector.
func (c configInfo) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c configInfo) Collect(to chan<- prometheus.Metric) {
	if hash := c.stats().Hash; hash != "" {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, hash)
	}
}
