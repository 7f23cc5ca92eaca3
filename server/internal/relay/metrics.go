package relay

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are the counters of a relay.
type counts struct {
	made, dropped, broken, redefined          atomic.Int64
	lists, rewound                            atomic.Int64
	deltas, deltasFailed                      atomic.Int64
	questions, chases, passedOn, olderWatches atomic.Int64
	documentQuestions, staleDocuments         atomic.Int64
}

// Collectors returns the metrics of the relay.
func (r *Relay) Collectors() []prometheus.Collector {
	counter := func(name, help string, value *atomic.Int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "levelwire_relay_" + name + "_total", Help: help}, func() float64 { return float64(value.Load()) })
	}
	return []prometheus.Collector{
		staleness{r},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "levelwire_relay_upstream_silence_seconds",
			Help: "For how long the upstream has not answered, or has not accepted the relay's credentials: below two seconds while all is well.",
		}, func() float64 { return r.silence().Seconds() }),
		counter("caches_made", "Caches that were made because their resource was listed or watched.", &r.counts.made),
		counter("caches_dropped", "Caches that were dropped because they were not used.", &r.counts.dropped),
		counter("caches_broken", "Caches that were dropped because the upstream does not serve or allow their resource any more, or in a way that cannot be cached.", &r.counts.broken),
		counter("caches_redefined", "Caches that were dropped because the definition of their custom resource has changed.", &r.counts.redefined),
		counter("lists", "Lists and differences of whole resources that the upstream has sent.", &r.counts.lists),
		counter("rewinds", "How often the versions of the upstream went back.", &r.counts.rewound),
		counter("current_version_requests", "How often the upstream was asked for the current version of a resource.", &r.counts.questions),
		counter("document_requests", "How often the upstream was asked for a document of its API (discovery, OpenAPI, version), or whether it has changed.", &r.counts.documentQuestions),
		counter("stale_documents", "Requests for such documents that were answered from memory because the upstream did not answer.", &r.counts.staleDocuments),
		counter("progress_requests", "Short watches that were opened to learn how far a cache is.", &r.counts.chases),
		counter("deltas", "Events that came as the difference from another state.", &r.counts.deltas),
		counter("deltas_failed", "Streams that were begun anew because such a state was missing, or not the right one.", &r.counts.deltasFailed),
		counter("passed_on", "Requests that were passed on to the upstream.", &r.counts.passedOn),
		counter("older_watches", "Watches that were passed on because they began before the history of their cache.", &r.counts.olderWatches),
	}
}

// staleness collects how old the caches may be.
type staleness struct{ relay *Relay }

var stalenessDesc = prometheus.NewDesc("levelwire_relay_staleness_seconds",
	"For how long a cache may have missed changes of the upstream.", []string{"group", "version", "resource"}, nil)

// Describe implements prometheus.Collector.
func (staleness) Describe(to chan<- *prometheus.Desc) { to <- stalenessDesc }

// Collect implements prometheus.Collector.
func (s staleness) Collect(to chan<- prometheus.Metric) {
	for res, source := range *s.relay.byResource.Load() {
		if source.cache.IsReady() && !source.silence.wasFound() {
			to <- prometheus.MustNewConstMetric(stalenessDesc, prometheus.GaugeValue, source.stream.age().Seconds(), res.Group, res.Version, res.Plural)
		}
	}
}
