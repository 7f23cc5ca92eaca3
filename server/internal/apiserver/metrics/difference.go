package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/internal/difference"
)

// Difference counts what differences consisted of. The requests
// themselves, their bytes and their time are counted as all others are, under
// the verb "difference".
type Difference struct {
	results *prometheus.CounterVec
	objects *prometheus.CounterVec
	// ListInstead counts the requests that were refused because a list costs less.
	ListInstead prometheus.Counter
	complete    prometheus.Counter
}

func newDifference() Difference {
	m := Difference{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_differences_total", Help: "Differences that clients asked for in place of a list, by what they were answered with.",
		}, []string{"result"}),
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_difference_objects_total", Help: "Objects of the collections that differences were asked of, by how the answer describes them.",
		}, []string{"representation"}),
	}
	m.ListInstead, m.complete = m.results.WithLabelValues("list instead"), m.results.WithLabelValues("difference")
	return m
}

// Answered counts a difference that has been sent.
func (m *Difference) Answered(h *difference.Header) {
	m.complete.Inc()
	m.objects.WithLabelValues("none").Add(float64(h.Selected - h.Unchanged - h.Sent))
	m.objects.WithLabelValues("hash").Add(float64(h.Unchanged))
	m.objects.WithLabelValues("full").Add(float64(h.Sent))
}
