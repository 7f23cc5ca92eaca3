package observe

import (
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metricSet is what /metrics had, by name.
type metricSet map[string]*dto.MetricFamily

// parseMetrics reads the text format.
func parseMetrics(r io.Reader) (metricSet, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(r)
}

func (m metricSet) has(name string) bool { return m[name] != nil }

// sum adds the values of a metric, by some of its labels.
func (m metricSet) sum(name string, labels ...string) map[string]float64 {
	sums := map[string]float64{}
	for _, metric := range m[name].GetMetric() {
		sums[key(metric, labels)] += value(metric)
	}
	return sums
}

// total adds all values of a metric.
func (m metricSet) total(name string) float64 { return m.sum(name)[""] }

// key joins the values of labels.
func key(metric *dto.Metric, labels []string) (joined string) {
	for _, label := range labels {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() != label || pair.GetValue() == "" {
				continue
			}
			if joined != "" {
				joined += " "
			}
			joined += pair.GetValue()
		}
	}
	return joined
}

// value is that of a counter or a gauge, or the number of what a histogram has seen.
func value(metric *dto.Metric) float64 {
	switch {
	case metric.Counter != nil:
		return metric.GetCounter().GetValue()
	case metric.Gauge != nil:
		return metric.GetGauge().GetValue()
	case metric.Histogram != nil:
		return float64(metric.GetHistogram().GetSampleCount())
	case metric.Untyped != nil:
		return metric.GetUntyped().GetValue()
	}
	return 0
}

// seconds adds the sums of a histogram, by some of its labels.
func (m metricSet) seconds(name string, labels ...string) map[string]float64 {
	sums := map[string]float64{}
	for _, metric := range m[name].GetMetric() {
		sums[key(metric, labels)] += metric.GetHistogram().GetSampleSum()
	}
	return sums
}
