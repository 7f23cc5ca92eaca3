package events

import "sync/atomic"

// Stats counts the events that were reported to a Recorder.
type Stats struct {
	// Queued is how many wait to be written now.
	Queued int
	// Written events are on the server: new Event objects, and raised counts.
	Written uint64
	// Combined is how many of these were combined with similar ones.
	Combined uint64
	// Throttled events were dropped because their object had too many.
	Throttled uint64
	// QueueFull counts those dropped because 1024 others waited.
	QueueFull uint64
	// UnknownKind counts those about objects whose kind neither the scheme nor the
	// object's TypeMeta says.
	UnknownKind uint64
	// Failed events could not be written: the server refused them or did not answer.
	Failed uint64
}

// Dropped is how many events were reported and will never be seen on the server.
func (s Stats) Dropped() uint64 { return s.Throttled + s.QueueFull + s.UnknownKind + s.Failed }

// counters are the Stats of a Recorder while it runs.
type counters struct {
	written, combined, throttled, queueFull, unknownKind, failed atomic.Uint64
}

// Stats returns what the Recorder has counted so far. [client/metrics.Events] exports it.
//
// [client/metrics.Events]: https://pkg.go.dev/github.com/levelwire/levelwire/client/metrics#Events
func (r *Recorder) Stats() Stats {
	return Stats{
		Queued:  len(r.queue),
		Written: r.counts.written.Load(), Combined: r.counts.combined.Load(), Throttled: r.counts.throttled.Load(),
		QueueFull: r.counts.queueFull.Load(), UnknownKind: r.counts.unknownKind.Load(), Failed: r.counts.failed.Load(),
	}
}
