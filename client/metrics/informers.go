package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// Source is where a collector finds informers; an informer.Factory is one.
// Those that are made later are found, too.
type Source interface {
	Informers() []informer.Informer
}

// Informers returns a collector of all informers of a source, by name. It is
// safe for concurrent use. Registering two sources whose informers share names
// in one registry needs a label for each: prometheus.WrapRegistererWith.
func Informers(source Source) prometheus.Collector { return informers{source} }

type informers struct{ source Source }

// view is what one scrape reads of one informer.
type view struct {
	informer.Stats
	informer.Freshness
	of informer.Informer
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("levelwire_informer_"+name, help, append([]string{"informer"}, labels...), nil)
}

func gauge(name, help string, value func(view) float64) number[view] {
	return number[view]{describe(name, help), prometheus.GaugeValue, value}
}

func counter(name, help string, value func(view) int64) number[view] {
	return number[view]{describe(name, help), prometheus.CounterValue, func(v view) float64 { return float64(value(v)) }}
}

var informerNumbers = numbers[view]{
	gauge("objects", "Objects in the cache.", func(v view) float64 { return float64(v.Objects) }),
	gauge("object_bytes", "Bytes that those take when encoded, estimated from a sample.", func(v view) float64 { return float64(v.of.EstimateBytes()) }),
	gauge("queue_length", "Objects with changes that the cache does not show yet.", func(v view) float64 { return float64(v.Stats.Queued) }),
	gauge("synced", "1 if a list is complete, or the server has confirmed the restored state.", func(v view) float64 { return truth(v.Synced) }),
	gauge("restored", "1 while the cache is what was read from disk and the server has not confirmed it.", func(v view) float64 { return truth(v.Restored) }),
	gauge("gone", "1 while the server does not have the resource.", func(v view) float64 { return truth(!v.GoneSince.IsZero()) }),
	gauge("age_seconds", "How old the view is; -1 if there never was a complete one.", age),

	counter("events_total", "Changes pushed to the handlers' queues.", func(v view) int64 { return v.Events }),
	counter("watches_total", "Watches opened, those of streaming lists included.", func(v view) int64 { return v.Reflector.Watches }),
	counter("bookmarks_total", "Bookmarks received.", func(v view) int64 { return v.Reflector.Bookmarks }),
	counter("stale_total", "Events and lists dropped because they were older than what had been seen.", func(v view) int64 { return v.Reflector.Stale }),
	counter("decode_errors_total", "Events and lists that could not be understood.", func(v view) int64 { return v.Reflector.DecodeErrors }),
	counter("callback_panics_total", "Calls of OnError and Rand that panicked.", func(v view) int64 { return v.Reflector.Panics }),
	counter("streaming_fallbacks_total", "Streaming lists given up for pages.", func(v view) int64 { return v.Reflector.StreamingFallbacks }),
	counter("difference_objects_total", "Objects received as differences, in place of lists.", func(v view) int64 { return v.Reflector.DifferenceObjects }),
	counter("difference_bytes_total", "Bytes that differences took, questions included.", func(v view) int64 { return v.Reflector.DifferenceBytes }),
	counter("handlers_failed_total", "Handlers that are not called any more because they fell behind by more than MaxUnmergedEvents.", func(v view) int64 { return v.FailedHandlers }),
	counter("mutations_total", "Objects of the cache that handlers or readers were found to have changed.", func(v view) int64 { return v.Mutations }),
	counter("unindexed_total", "States for which an index function failed.", func(v view) int64 { return v.Unindexed }),
	counter("untransformed_total", "States for which the transform failed.", func(v view) int64 { return v.Untransformed }),
	counter("consistency_checks_total", "Comparisons with the server that were completed.", func(v view) int64 { return v.ConsistencyCheck.Rounds }),
	counter("consistency_checks_abandoned_total", "Comparisons with the server that were given up.", func(v view) int64 { return v.ConsistencyCheck.Abandoned }),
	counter("disk_saves_total", "Times that the cache was written to its file.", func(v view) int64 { return v.Disk.Saves + v.Disk.Advances }),
	counter("disk_failures_total", "Times that it could not be.", func(v view) int64 { return v.Disk.Failures }),
}

var (
	listsTotal       = describe("lists_total", "Lists begun, by cause.", "cause")
	resumesTotal     = describe("resumes_total", "Watches opened again from the last resourceVersion, by reason.", "reason")
	differencesTotal = describe("differences_total", "Questions for a difference in place of a list, by result.", "result")
	correctionsTotal = describe("corrections_total", "Objects of the cache that differed from the server and were corrected, by how.", "difference")
)

// These causes and reasons are there from the start, as 0: a rate needs a
// number before the first increase.
var (
	causes = []reflector.ListCause{reflector.ListInitial, reflector.ListExpired, reflector.ListRejected, reflector.ListDecode,
		reflector.ListRewound, reflector.ListRepeated, reflector.ListReturned, reflector.ListUnwatched, reflector.ListUnversioned, reflector.ListStuck}
	reasons = []reflector.ResumeReason{reflector.ResumeEnded, reflector.ResumeCut, reflector.ResumeRefused, reflector.ResumeBusy,
		reflector.ResumeServer, reflector.ResumeDenied, reflector.ResumeNotServed, reflector.ResumeSilent, reflector.ResumeShort, reflector.ResumeDecode}
	results = []reflector.DifferenceResult{reflector.DifferenceApplied, reflector.DifferenceListInstead, reflector.DifferenceUnsupported, reflector.DifferenceFailed}
)

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func age(v view) float64 {
	if v.AsOf.IsZero() {
		return -1
	}
	return v.Age.Seconds()
}

// Describe implements prometheus.Collector.
func (c informers) Describe(out chan<- *prometheus.Desc) {
	informerNumbers.describe(out)
	for _, desc := range []*prometheus.Desc{listsTotal, resumesTotal, differencesTotal, correctionsTotal} {
		out <- desc
	}
	handlerNumbers.describe(out)
}

// Collect implements prometheus.Collector.
func (c informers) Collect(out chan<- prometheus.Metric) {
	for _, i := range c.source.Informers() {
		v := view{Stats: i.Stats(), Freshness: i.Freshness(), of: i}
		informerNumbers.collect(out, v, i.Name())
		for _, cause := range causes {
			out <- count(listsTotal, v.Reflector.Lists[cause], i.Name(), string(cause))
		}
		for _, reason := range reasons {
			out <- count(resumesTotal, v.Reflector.Resumes[reason], i.Name(), string(reason))
		}
		for _, result := range results {
			out <- count(differencesTotal, v.Reflector.Differences[result], i.Name(), string(result))
		}
		out <- count(correctionsTotal, v.ConsistencyCheck.Missing, i.Name(), "missing")
		out <- count(correctionsTotal, v.ConsistencyCheck.Changed, i.Name(), "changed")
		out <- count(correctionsTotal, v.ConsistencyCheck.Extra, i.Name(), "extra")
		collectHandlers(out, i.Name(), v.Handlers)
	}
}

func count(desc *prometheus.Desc, n int64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
}
