package caches

import "github.com/prometheus/client_golang/prometheus"

// Collectors are the metrics of the caches together, and of the storage behind them.
func (c *Set) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		memoryCollector{c},
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_compaction_failures_total",
			Help: "Compactions of the store that failed: its history grows until one succeeds.",
		}, func() float64 { return float64(c.failedCompactions.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_compactions_without_tombstones_total",
			Help: "Compactions of the store whose deletions could not be kept: clients that resume from before list again.",
		}, func() float64 { return float64(c.Feed.Stats().Forgotten) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_feed_disorders_total",
			Help: "Change streams of the store that delivered a change twice, or one that they had passed: all caches were listed again.",
		}, func() float64 { return float64(c.Feed.Stats().Disorders) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "levelwire_feed_lost_total",
			Help: "Times that the store's change stream was found to have left out changes: the cache was listed again.",
		}, func() float64 { return float64(c.Feed.Stats().Lost) }),
	}
}
