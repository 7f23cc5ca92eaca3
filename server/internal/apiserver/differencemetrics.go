package apiserver

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/internal/difference"
)

// differenceMetrics count what differences consisted of. The requests
// themselves, their bytes and their time are counted as all others are, under
// the verb "difference".
type differenceMetrics struct {
	results     *prometheus.CounterVec
	objects     *prometheus.CounterVec
	listInstead prometheus.Counter
	complete    prometheus.Counter
}

func newDifferenceMetrics() differenceMetrics {
	m := differenceMetrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_differences_total", Help: "Differences that clients asked for in place of a list, by what they were answered with.",
		}, []string{"result"}),
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_difference_objects_total", Help: "Objects of the collections that differences were asked of, by how the client was told of them.",
		}, []string{"told"}),
	}
	m.listInstead, m.complete = m.results.WithLabelValues("list instead"), m.results.WithLabelValues("difference")
	return m
}

// answered counts a difference that has been sent.
func (m *differenceMetrics) answered(h *difference.Header) {
	m.complete.Inc()
	m.objects.WithLabelValues("not at all").Add(float64(h.Selected - h.Unchanged - h.Sent))
	m.objects.WithLabelValues("by hash").Add(float64(h.Unchanged))
	m.objects.WithLabelValues("in full").Add(float64(h.Sent))
}
