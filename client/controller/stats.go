package controller

import (
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Stats is how a controller stands and what it did so far.
type Stats struct {
	Name    string
	Workers int
	Synced  bool
	Queue   workqueue.Stats
	Calls   uint64 // of the ReconcileFunc, also those that have not returned
	Active  int    // calls that have not returned

	Successes      uint64 // calls that returned no error and asked for no other call
	Requeues       uint64 // calls that succeeded and asked for another one later
	Failures       uint64 // calls that returned an error; those of the next three included
	Conflicts      uint64 // calls that lost a race against another writer, or found their namespace going
	Panics         uint64 // calls that panicked or ended their goroutine
	TerminalErrors uint64 // calls that returned a TerminalError

	Timeouts uint64 // calls that Options.Timeout has ended, whatever they returned

	PutOffs    uint64 // calls that returned its error
	KeysPutOff int    // keys that wait for their next call until informers have caught up
	// Waited is the total time until informers had caught up, for all keys that waited
	// at the same time together, and WaitedWithin counts as TookWithin does.
	Waited       time.Duration
	WaitedWithin [Buckets]uint64

	// Took is the total time of the calls that have returned, and TookWithin
	// counts them by how long they took; see BucketBounds. A bucket does not hold
	// what is in those before it.
	Took       time.Duration
	TookWithin [Buckets]uint64
}

// Buckets is how many buckets Stats.TookWithin has.
const Buckets = 16

// BucketBounds are the upper bounds, inclusive, of all buckets but the last,
// which has none.
func BucketBounds() [Buckets - 1]time.Duration {
	const ms = time.Millisecond
	return [...]time.Duration{ms, 2500 * time.Microsecond, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms,
		time.Second, 2500 * ms, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
}

var bucketBounds = BucketBounds()

// durations is a histogram that many goroutines add to.
type durations struct {
	total  atomic.Int64
	within [Buckets]atomic.Uint64
}

func (d *durations) observe(took time.Duration) {
	n := 0
	for n < len(bucketBounds) && took > bucketBounds[n] {
		n++
	}
	d.within[n].Add(1)
	d.total.Add(int64(took))
}

type counters struct {
	calls, successes, requeues, failures, conflicts, panics, terminal atomic.Uint64
	active                                                            atomic.Int64
	timeouts, putOffs                                                 atomic.Uint64
	took, waited                                                      durations
}

// Stats returns the counters and gauges of this moment.
func (c *TypedController[K]) Stats() Stats {
	s := Stats{
		Name: c.opts.Name, Workers: c.opts.Workers, Synced: c.HasSynced(), Queue: c.queue.Stats(),
		Calls: c.counts.calls.Load(), Active: int(c.counts.active.Load()),
		Successes: c.counts.successes.Load(), Requeues: c.counts.requeues.Load(),
		Failures: c.counts.failures.Load(), Conflicts: c.counts.conflicts.Load(),
		Panics: c.counts.panics.Load(), TerminalErrors: c.counts.terminal.Load(),
		Timeouts: c.counts.timeouts.Load(), PutOffs: c.counts.putOffs.Load(),
		Took: time.Duration(c.counts.took.total.Load()), Waited: time.Duration(c.counts.waited.total.Load()),
	}
	s.KeysPutOff = c.keysPutOff()
	for n := range s.TookWithin {
		s.TookWithin[n], s.WaitedWithin[n] = c.counts.took.within[n].Load(), c.counts.waited.within[n].Load()
	}
	return s
}
