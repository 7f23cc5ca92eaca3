package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Key names the object to reconcile.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ReconcileFunc brings one object to its wanted state, or does nothing if it
// does not exist any more. It is called by several workers at once, but never
// twice at once with one key. After an error it is called again later; see
// [TerminalError].
type ReconcileFunc func(ctx context.Context, key Key) (Result, error)

// Result says when a ReconcileFunc that has succeeded is called again.
type Result struct {
	// RequeueAfter asks for another call after this time even if nothing
	// changes, unless it is not positive. Of several requests that wait for one
	// key the earliest counts.
	RequeueAfter time.Duration
	// Pending keeps the key's back-off: the call has begun what ends later, and
	// Forget or Retry will be called then.
	Pending bool
}

// After is a Result that asks for another call after d.
func After(d time.Duration) Result { return Result{RequeueAfter: d} }

// Sooner returns the earlier of two times to come back, where 0 is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// LowPriority is the priority of keys from the first lists and from resyncs; that of
// fresh changes is 0.
const LowPriority = -100

// Controller calls a ReconcileFunc with the keys of what has changed. New makes
// it, [For], [Owns], [Watch] and [Handle] say what it watches, and it runs
// once. All its methods may be called concurrently.
type Controller struct {
	opts  Options
	fn    ReconcileFunc
	queue *workqueue.Queue[Key]

	mu      sync.Mutex
	sources []source
	phase   phase
	end     context.CancelCauseFunc // ends Run; while running
	workers sync.WaitGroup

	synced chan struct{} // closed when all sources have been listed
	counts counters
}

type phase int

const (
	idle phase = iota
	running
	stopped
)

type counters struct {
	calls, failures, conflicts, panics, requeues atomic.Uint64
}

// New returns a controller that watches nothing yet. Keys may be added before
// it runs.
func New(fn ReconcileFunc, opts Options) (*Controller, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	if fn == nil {
		return nil, fmt.Errorf("controller %s: there is nothing to call", opts.Name)
	}
	return &Controller{
		opts: opts, fn: fn, synced: make(chan struct{}),
		queue: workqueue.New(workqueue.Options[Key]{RateLimiter: opts.RateLimiter, FairShare: opts.FairShare}),
	}, nil
}

// Name is the controller's name.
func (c *Controller) Name() string { return c.opts.Name }

// Add asks for a call soon. Until everything that is watched has been listed
// the priority is LowPriority, and then 0: a handler that adds keys need not
// distinguish the first list from changes.
func (c *Controller) Add(key Key) {
	if c.HasSynced() {
		c.queue.Add(key)
		return
	}
	c.AddPriority(key, LowPriority)
}

// AddPriority asks for a call soon, before all of lower priorities. A key that
// waits already is raised, never lowered.
func (c *Controller) AddPriority(key Key, priority int) {
	c.queue.AddWith(key, workqueue.AddOptions{Priority: priority})
}

// AddAfter asks for a call after some time.
func (c *Controller) AddAfter(key Key, d time.Duration) { c.queue.AddAfter(key, d) }

// Retry asks for a call after the key's back-off. A ReconcileFunc returns an error
// instead; this is for what fails after it has returned.
func (c *Controller) Retry(key Key) { c.queue.AddRateLimited(key) }

// Forget ends the key's back-off, as success does.
func (c *Controller) Forget(key Key) { c.queue.Forget(key) }

// Synced is closed when everything that is watched has been listed, and the
// workers begin.
func (c *Controller) Synced() <-chan struct{} { return c.synced }

// HasSynced reports whether Synced is closed.
func (c *Controller) HasSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// Stats is how a controller stands and what it did so far.
type Stats struct {
	Name      string
	Workers   int
	Synced    bool
	Queue     workqueue.Stats
	Calls     uint64 // of the ReconcileFunc, also those that have not returned
	Failures  uint64 // calls that returned an error, conflicts and panics included
	Conflicts uint64 // calls that lost a race against another writer, or found their namespace going
	Panics    uint64 // calls that panicked or ended their goroutine
	Requeues  uint64 // calls that succeeded and asked for another one later
}

// Stats returns the counters and gauges of this moment.
func (c *Controller) Stats() Stats {
	return Stats{
		Name: c.opts.Name, Workers: c.opts.Workers, Synced: c.HasSynced(), Queue: c.queue.Stats(),
		Calls: c.counts.calls.Load(), Failures: c.counts.failures.Load(), Conflicts: c.counts.conflicts.Load(),
		Panics: c.counts.panics.Load(), Requeues: c.counts.requeues.Load(),
	}
}

// Healthy returns an error if a call takes longer than Options.StuckAfter. It
// says nothing of a controller that has not begun: Synced is for that.
func (c *Controller) Healthy() error {
	if longest := c.queue.Stats().Longest; c.opts.StuckAfter > 0 && longest > c.opts.StuckAfter {
		return fmt.Errorf("controller %s: a call has not returned for %v (limit %v)", c.opts.Name, longest.Round(time.Second), c.opts.StuckAfter)
	}
	return nil
}
