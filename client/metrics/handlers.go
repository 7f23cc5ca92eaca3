package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/informer"
)

func ofHandler(name, help string, kind prometheus.ValueType, value func(informer.HandlerStats) float64) number[informer.HandlerStats] {
	return number[informer.HandlerStats]{describe("handler_"+name, help, "handler"), kind, value}
}

var handlerNumbers = numbers[informer.HandlerStats]{
	ofHandler("queue_length", "Objects with handler calls that wait; events with MaxUnmergedEvents.", prometheus.GaugeValue,
		func(s informer.HandlerStats) float64 { return float64(s.Queued) }),
	ofHandler("lag_seconds", "For how long calls of the handler have been waiting or running without a pause; 0 when it is idle.", prometheus.GaugeValue,
		func(s informer.HandlerStats) float64 { return s.Lag.Seconds() }),
	ofHandler("busy_seconds_total", "For how long the handler has been called, in all.", prometheus.CounterValue,
		func(s informer.HandlerStats) float64 { return s.Busy.Seconds() }),
	ofHandler("calls_total", "Calls that returned.", prometheus.CounterValue,
		func(s informer.HandlerStats) float64 { return float64(s.Delivered) }),
	ofHandler("coalesced_total", "Events that newer ones replaced before the handler was called.", prometheus.CounterValue,
		func(s informer.HandlerStats) float64 { return float64(s.Coalesced) }),
	ofHandler("panics_total", "Calls that panicked.", prometheus.CounterValue,
		func(s informer.HandlerStats) float64 { return float64(s.Panics) }),
}

// collectHandlers exports handlers by name. Those of one informer that share a
// name, as all do that have none, are exported as one: their sums, and the lag
// of the one that lags most.
func collectHandlers(out chan<- prometheus.Metric, of string, handlers []informer.HandlerStats) {
	byName := map[string]informer.HandlerStats{}
	for _, h := range handlers {
		sum := byName[h.Name]
		sum.Queued += h.Queued
		sum.Lag = max(sum.Lag, h.Lag)
		sum.Busy += h.Busy
		sum.Delivered += h.Delivered
		sum.Coalesced += h.Coalesced
		sum.Panics += h.Panics
		byName[h.Name] = sum
	}
	for name, h := range byName {
		handlerNumbers.collect(out, h, of, name)
	}
}
