package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client/workqueue"
)

// TypedReconcileFunc brings what the key names to its wanted state, or does
// nothing if it does not exist any more. It is called by several workers at
// once, but never twice at once with one key. After an error it is called again
// later; see [TerminalError]. [Logger] returns a logger from its context.
type TypedReconcileFunc[K comparable] func(ctx context.Context, key K) (Result, error)

// ReconcileFunc is a TypedReconcileFunc of a namespace and a name.
type ReconcileFunc = TypedReconcileFunc[Key]

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

// TypedController calls a TypedReconcileFunc with the keys of what has changed.
// Its keys may be of any comparable type: [Key] is that of a [Controller],
// [ClusterKey] adds a cluster, and a program may have types of its own. NewTyped
// makes it, [Watch] and [Handle] say what it watches, and it runs once. All its
// methods may be called concurrently.
type TypedController[K comparable] struct {
	opts  TypedOptions[K]
	fn    TypedReconcileFunc[K]
	queue *workqueue.Queue[K]

	mu      sync.Mutex
	sources []*Registration
	phase   phase
	end     context.CancelCauseFunc // ends Run; set while running
	// lifetime ends when no worker runs any more; set while running.
	lifetime    context.Context
	endLifetime context.CancelFunc
	serving     sync.WaitGroup // one for each source, and one for catchingUp; added to while running only
	workers     sync.WaitGroup

	written     string          // the newest version of a write that is known
	least       target          // of RequireResourceVersion
	catchingUp  *catchUp[K]     // that runs
	catchUpNext *catchUp[K]     // that runs after it
	caughtUp    uint64          // how many have ended with all informers there
	putOff      map[K]*required // what keys require that were put off; until their next call
	wakes       wakes[K]

	synced chan struct{} // closed when all sources have been listed
	counts counters
}

// Controller is a TypedController of a namespace and a name. New makes it, and
// [For], [Owns], [Watch] and [Handle] say what it watches.
type Controller = TypedController[Key]

type phase int

const (
	idle phase = iota
	running
	stopped
)

// New returns a controller that watches nothing yet. Keys may be added before
// it runs.
func New(fn ReconcileFunc, opts Options) (*Controller, error) { return NewTyped(fn, opts) }

// NewTyped is New for keys of any type.
func NewTyped[K comparable](fn TypedReconcileFunc[K], opts TypedOptions[K]) (*TypedController[K], error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	if fn == nil {
		return nil, fmt.Errorf("controller %s: the ReconcileFunc is nil", opts.Name)
	}
	return &TypedController[K]{
		opts: opts, fn: fn, synced: make(chan struct{}), putOff: map[K]*required{},
		least: target{from: &Registration{name: "RequireResourceVersion"}},
		queue: workqueue.New(workqueue.Options[K]{RateLimiter: opts.RateLimiter, FairShare: opts.FairShare, Logger: opts.Logger}),
	}, nil
}

// Name is the controller's name.
func (c *TypedController[K]) Name() string { return c.opts.Name }

// NeedLeaderElection reports whether one process at a time runs the controller;
// see Options.WithoutLeaderElection.
func (c *TypedController[K]) NeedLeaderElection() bool { return !c.opts.WithoutLeaderElection }

// Add asks for a call soon. Until everything that is watched has been listed
// the priority is LowPriority, and then 0: a handler that adds keys need not
// distinguish the first list from changes.
func (c *TypedController[K]) Add(key K) {
	if c.HasSynced() {
		c.wakes.add(key)
		c.queue.Add(key)
		return
	}
	c.AddPriority(key, LowPriority)
}

// AddPriority asks for a call soon, before all of lower priorities. A key that
// waits already is raised, never lowered.
func (c *TypedController[K]) AddPriority(key K, priority int) {
	c.wakes.add(key)
	c.queue.AddWith(key, workqueue.AddOptions{Priority: priority})
}

// AddAfter asks for a call after some time.
func (c *TypedController[K]) AddAfter(key K, d time.Duration) {
	c.wakes.add(key)
	c.queue.AddAfter(key, d)
}

// Retry asks for a call after the key's back-off. A ReconcileFunc returns an error
// instead; this is for what fails after it has returned.
func (c *TypedController[K]) Retry(key K) { c.queue.AddRateLimited(key) }

// Forget ends the key's back-off, as success does.
func (c *TypedController[K]) Forget(key K) { c.queue.Forget(key) }

// RequireResourceVersion has [Consistent] include a version from now on: nothing that asks it is
// decided before every informer shows at least that. It is for what other processes wrote before this one acts. Run
// calls it with the version of the Lease if its context is that of a leader ([leader.ResourceVersion]), for caches that were kept up to date
// during another one's term may lag behind what that one has made; a program with another election calls it itself. An older version
// than one before, or one that is no number, changes nothing. An informer with versions of another storage is left out.
func (c *TypedController[K]) RequireResourceVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least.version = newest(c.least.version, version)
}

// Synced is closed when everything that is watched has been listed, and the
// workers begin.
func (c *TypedController[K]) Synced() <-chan struct{} { return c.synced }

// HasSynced reports whether Synced is closed.
func (c *TypedController[K]) HasSynced() bool { return isClosed(c.synced) }

// Healthy returns an error if a call takes longer than Options.StuckAfter. It is
// for readiness and for alerts: a restart would end the calls that progress,
// too. Of a controller that has not begun it says nothing; HasSynced does.
func (c *TypedController[K]) Healthy() error {
	if longest := c.queue.Stats().Longest; c.opts.StuckAfter > 0 && longest > c.opts.StuckAfter {
		return fmt.Errorf("controller %s: a call has not returned for %v (limit %v)", c.opts.Name, longest.Round(time.Second), c.opts.StuckAfter)
	}
	return nil
}
