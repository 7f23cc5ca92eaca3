package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/events"
)

// Events returns a collector of an event recorder: levelwire_events_written_total,
// levelwire_events_dropped_total by reason, and others. read is its Stats method; each
// recorder of a registry needs a name of its own, usually its component's.
func Events(name string, read func() events.Stats) prometheus.Collector {
	e := &statsCollector[events.Stats]{read: read}
	describe := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc("levelwire_events_"+metric, help, nil, prometheus.Labels{"recorder": name})
	}
	e.numbers.gauge(describe("queue_length", "Events that wait to be written."), func(s events.Stats) float64 { return float64(s.Queued) })
	e.numbers.counter(describe("written_total", "Events written: new objects and raised counts."), func(s events.Stats) uint64 { return s.Written })
	e.numbers.counter(describe("combined_total", "Of those, the ones that were combined with similar events."), func(s events.Stats) uint64 { return s.Combined })
	dropped := func(reason string, value func(events.Stats) uint64) {
		e.numbers.counter(prometheus.NewDesc("levelwire_events_dropped_total", "Events that were not written, by reason.", nil,
			prometheus.Labels{"recorder": name, "reason": reason}), value)
	}
	dropped("throttled", func(s events.Stats) uint64 { return s.Throttled })
	dropped("queue_full", func(s events.Stats) uint64 { return s.QueueFull })
	dropped("unknown_kind", func(s events.Stats) uint64 { return s.UnknownKind })
	dropped("failed", func(s events.Stats) uint64 { return s.Failed })
	return e
}
