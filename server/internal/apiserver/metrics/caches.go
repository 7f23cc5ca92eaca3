package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// cacheCollector reads the counters of the watch caches when metrics are requested,
// so that the caches do nothing for them in between. Caches are added and removed
// with the table of resources.
type cacheCollector struct {
	resources Resources
	cache     func(*resource.Resource) *watchcache.Cache
}

// Resources is the table of what is served.
type Resources interface{ All() []*resource.Resource }

// Caches returns a collector of the statistics of all watch caches. cache returns
// the cache of a stored resource, or nil.
func Caches(resources Resources, cache func(stored *resource.Resource) *watchcache.Cache) prometheus.Collector {
	return cacheCollector{resources: resources, cache: cache}
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
	describeCache("held_bytes", "Bytes that their JSON takes: fewer than it has if objects are held compressed.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.HeldBytes) }),
	describeCache("form_bytes", "Bytes of the other encodings that are kept with objects.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.FormBytes) }),
	describeCache("block_bytes", "Bytes of those that are encoded parts of lists, which are kept within a budget.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.BlockBytes) }),
	describeCache("history_events", "Events from which watches can be resumed.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.HistoryLen) }),
	describeCache("history_bytes", "Bytes that those events take, an estimate.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.HistoryBytes) }),
	describeCache("select_examined_total", "Objects that lists, and watches at their begin, have compared with a selector.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.LookedAt) }),
	describeCache("select_matched_total", "Objects among those that the selector matched. Far fewer than were examined: no filter of the cache helps the selectors that are used.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Selected) }),
	describeCache("events_total", "Events applied.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Events) }),
	describeCache("wakes_total", "Watchers woken by events.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Wakes) }),
	describeCache("tombstones", "Deletions that are kept after their events have been evicted.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.Tombstones) }),
	describeCache("tombstone_bytes", "Bytes of the objects kept with them, an estimate.", prometheus.GaugeValue,
		func(s watchcache.Stats) float64 { return float64(s.TombstoneBytes) }),
	describeCache("store_reads_total", "Lists, or parts of one, at a version that only the store may still have.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.BeforeLog) }),
	describeCache("repaired_total", "Discrepancies to the store that were found and repaired.", prometheus.CounterValue,
		func(s watchcache.Stats) float64 { return float64(s.Repaired) }),
}

// kindMetric is a counter of each cache with a label.
type kindMetric struct {
	desc   *prometheus.Desc
	values func(watchcache.Stats) map[string]int64
}

func describeKinds(name, help, label string, values func(watchcache.Stats) map[string]int64) kindMetric {
	return kindMetric{prometheus.NewDesc("levelwire_cache_"+name, help, []string{"group", "resource", label}, nil), values}
}

var kindMetrics = []kindMetric{
	describeKinds("resumes_total", "Watches by what they got first: exact, the events since their version; coalesced, the latest change of each object, because the events "+
		"were evicted; continued, the same because the watch was slower than the events; or initial, the objects, as requested.", "history",
		func(s watchcache.Stats) map[string]int64 {
			by := s.Resumes
			return map[string]int64{"exact": by.Exact, "coalesced": by.Coalesced, "continued": by.Continued, "initial": by.Initial}
		}),
	describeKinds("expired_total", "Watches and lists refused with 410 because their history was gone: old, a watch from too old a version; slow, one that was too slow; "+
		"reset, one whose cache dropped its log; exact, a list at a version; or continue, a continued list.", "reason",
		func(s watchcache.Stats) map[string]int64 {
			by := s.ExpiredBy
			return map[string]int64{"old": by.Old, "slow": by.Slow, "reset": by.Reset, "exact": by.Exact, "continue": by.Continue}
		}),
}

// Describe implements prometheus.Collector.
func (c cacheCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range kindMetrics {
		out <- m.desc
	}
	for _, m := range cacheMetrics {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector. A relay has a cache for each version of a kind: their
// numbers are added up.
func (c cacheCollector) Collect(out chan<- prometheus.Metric) {
	byResource := map[schema.GroupResource][]watchcache.Stats{}
	for _, res := range resource.StoredResources(c.resources.All()) {
		if cache := c.cache(res); cache != nil {
			byResource[res.GroupResource()] = append(byResource[res.GroupResource()], cache.Stats())
		}
	}
	for of, versions := range byResource {
		for _, m := range cacheMetrics {
			sum := 0.0
			for _, stats := range versions {
				sum += m.value(stats)
			}
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, sum, of.Group, of.Resource)
		}
		for _, m := range kindMetrics {
			sums := map[string]int64{}
			for _, stats := range versions {
				for kind, value := range m.values(stats) {
					sums[kind] += value
				}
			}
			for kind, sum := range sums {
				out <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(sum), of.Group, of.Resource, kind)
			}
		}
	}
}
