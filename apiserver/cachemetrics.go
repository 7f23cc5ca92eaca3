package apiserver

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/resource"
	"github.com/levelwire/levelwire/watchcache"
)

// cacheCollector reads the counters of the watch caches when somebody asks
// for metrics, so that counting costs the caches nothing more. The caches come
// and go with the table of resources.
type cacheCollector struct {
	resources Resources
	cache     func(*resource.Resource) *watchcache.Cache
}

// cacheMetric is one number of each cache.
type cacheMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(watchcache.Stats) float64
}

func describeCache(name, help string, kind prometheus.ValueType, value func(watchcache.Stats) float64) cacheMetric {
	return cacheMetric{prometheus.NewDesc("levelwire_cache_"+name, help, []string{"group", "resource"}, nil), kind, value}
}

var cacheMetrics = []cacheMetric{
	describeCache("objects", "Objects that the cache holds.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.Objects) }),
	describeCache("object_bytes", "Bytes of their JSON.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.ObjectBytes) }),
	describeCache("form_bytes", "Bytes of the other encodings that are kept with objects.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.FormBytes) }),
	describeCache("history_events", "Events from which watches can be resumed.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.HistoryLen) }),
	describeCache("history_bytes", "Bytes that those events hold, an estimate.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.HistoryBytes) }),
	describeCache("events_total", "Events applied.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Events) }),
	describeCache("wakes_total", "Watchers woken by events.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Wakes) }),
	describeCache("expired_total", "Reads and watches refused because their history was gone.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Expired) }),
	describeCache("repaired_total", "Differences to the store that were found and mended.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Repaired) }),
}

// Describe implements prometheus.Collector.
func (c cacheCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range cacheMetrics {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c cacheCollector) Collect(out chan<- prometheus.Metric) {
	for _, res := range storedResources(c.resources) {
		cache := c.cache(res)
		if cache == nil {
			continue
		}
		stats := cache.Stats()
		for _, m := range cacheMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stats), res.Group, res.Plural)
		}
	}
}

// storedResources returns what has a cache: every stored resource once, those
// of custom resources, which are not served themselves, included.
func storedResources(table Resources) []*resource.Resource {
	var list []*resource.Resource
	seen := map[*resource.Resource]bool{}
	for _, res := range table.All() {
		if stored := res.Stored(); !seen[stored] {
			seen[stored] = true
			list = append(list, stored)
		}
	}
	return list
}
