package leader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/contain"
)

var (
	// ErrLost is what Run returns, and the cause of the leader's context, when
	// leadership was lost: another candidate has it, or may soon. Run may be
	// called again, to be a candidate again.
	ErrLost = errors.New("leadership was lost")
	// ErrNotReleased is what Run returns when the leader has stopped in good
	// order, but the Lease is still in its name: it could not be released. It runs
	// out by itself.
	ErrNotReleased = errors.New("the lease was not released")
	// ErrPanicked is what Run returns when the function that leads has panicked, with the panic and
	// its stack, or has ended its goroutine (runtime.Goexit).
	ErrPanicked = errors.New("the function that leads has failed")
)

// Elector is one candidate. Its methods may be called concurrently.
type Elector struct {
	opts   Options
	leases leases
	// reconnect has later requests use another connection; nil: they use any.
	reconnect func()
	// now is the monotonic clock's time, wall what the wall clock shows, to
	// notice that this machine slept.
	now, wall func() time.Time

	mu       sync.Mutex
	observed observation
	running  bool
	leading  bool
	lostAt   time.Time // set while the leader function still runs after a loss
	renewed  instant   // when the last renewal that succeeded was sent
	stats    Stats
	panics   contain.Counter
}

// leases is what is needed of the API.
type leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Stats is how a candidate stands and what it did so far.
type Stats struct {
	Leading  bool
	Leader   string    // identity last seen in the Lease; "": none
	Renewed  time.Time // when the last own renewal that succeeded was sent
	Acquired uint64    // times this candidate became leader
	Lost     uint64    // times it lost leadership
	Renewals uint64    // writes of the Lease that succeeded, acquisitions too
	Failures uint64    // attempts to read or write the Lease that failed
	Panics   uint64    // calls of Options.OnNewLeader that panicked
	// SlowRenewals are the renewals of the leader that had to read the Lease first,
	// because another client had written it; also those that failed then.
	SlowRenewals uint64
}

// New returns a candidate. It sends nothing yet.
func New(c *client.Client, opts Options) (*Elector, error) {
	if c == nil {
		return nil, errors.New("leader election: the client is nil: make one with client.New or client.Load")
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	e := newElector(client.For[*coordinationv1.Lease](c).Namespace(opts.Namespace), opts)
	e.reconnect = c.Reconnect
	return e, nil
}

// newElector needs completed options.
func newElector(api leases, opts Options) *Elector {
	return &Elector{opts: opts, leases: api, now: time.Now, wall: time.Now}
}

// Run waits until this candidate leads and then calls lead. The context of
// lead ends when ctx does, and the moment leadership is lost, with ErrLost as
// its cause; lead must then return soon. Run returns after lead has: its error,
// ErrLost if that is why, and nil if ctx has ended before this candidate led.
// The Lease is renewed until lead has returned and is then released. If lead panics, or ends its goroutine
// (runtime.Goexit), its context ends, Run returns ErrPanicked, and the Lease is left to run out: what lead
// has begun may go on for a while.
//
// Run may be called again after it has returned, not before.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	if lead == nil {
		return fmt.Errorf("leader election: there is no function to call while %s leads", e.opts.Identity)
	}
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if !e.acquire(ctx) {
		return nil
	}
	return e.lead(ctx, lead)
}

func (e *Elector) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return fmt.Errorf("leader election: %s is a candidate for lease %s/%s already", e.opts.Identity, e.opts.Namespace, e.opts.Name)
	}
	e.running = true
	return nil
}

func (e *Elector) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running, e.lostAt = false, time.Time{}
}

// acquire waits until this candidate holds the Lease; false: ctx ended first.
func (e *Elector) acquire(ctx context.Context) bool {
	e.opts.Logger.Info("waiting to lead")
	failed, late := false, 0
	for {
		attempt, cancel := e.attempt(ctx, e.candidateLimit(late))
		held, err := e.try(attempt)
		timedOut := attempt.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil && !held:
			return false
		case held:
			e.opts.Logger.Info("leading")
			return true
		case err != nil && !failed:
			e.opts.Logger.Warn("the lease cannot be had now, trying again", "error", err)
		}
		failed = err != nil
		if timedOut { // it has waited enough
			e.leaveConnection()
			late++
			continue
		}
		late = 0
		timer := time.NewTimer(e.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// try attempts once to take the Lease.
func (e *Elector) try(ctx context.Context) (held bool, err error) {
	held, err = e.claim(ctx, false)
	e.mu.Lock()
	defer e.mu.Unlock()
	if held {
		e.leading = true
		e.stats.Acquired++
	}
	return held, err
}

// pause is how long a candidate waits before it looks again: not past the
// moment at which the Lease runs out, and never exactly as long as others.
func (e *Elector) pause() time.Duration {
	spread := time.Duration(rand.Float64() * jitter * float64(e.opts.RetryPeriod))
	if left := e.left(); left > 0 && left < e.opts.RetryPeriod {
		return left + spread
	}
	return e.opts.RetryPeriod + spread
}

// Identity returns the candidate's identity.
func (e *Elector) Identity() string { return e.opts.Identity }

// IsLeader reports whether this candidate leads: whether lead runs with a context
// that has not ended for a loss.
func (e *Elector) IsLeader() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading
}

// Leader returns the identity that was last seen in the Lease; "": none.
func (e *Elector) Leader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return holder(e.observed.lease)
}

// Stats returns the counters and gauges of this moment.
func (e *Elector) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Leading, s.Leader, s.Renewed = e.leading, holder(e.observed.lease), e.renewed.wall
	s.Panics = uint64(e.panics.Count())
	return s
}

// Healthy returns an error if this process works on though it has lost
// leadership: another candidate may lead by now. The process should be ended.
func (e *Elector) Healthy() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lostAt.IsZero() {
		return nil
	}
	return fmt.Errorf("lease %s/%s: %w %v ago, and the work has not stopped", e.opts.Namespace, e.opts.Name, ErrLost, e.now().Sub(e.lostAt).Round(time.Millisecond))
}
