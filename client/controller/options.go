package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Options configures a Controller: its fields are those of [TypedOptions].
type Options = TypedOptions[Key]

// TypedOptions configures a TypedController.
type TypedOptions[K comparable] struct {
	// Name stands in logs, errors and statistics. Required.
	Name string
	// Workers is how many keys are reconciled at once. Default 1.
	Workers int
	// Backoff is how long a key waits after its first failure; the wait doubles
	// with each further one, up to MaxBackoff. Defaults: 5 ms and 30 s, short
	// enough that a server which was away for an hour finds its controllers back
	// at once. Success ends the history.
	Backoff, MaxBackoff time.Duration
	// RateLimiter replaces the exponential back-off; Backoff and MaxBackoff cannot
	// be set beside it. Default: no overall limit, which would make each key that
	// fails wait for all others. If it panics, the key has an exponential back-off, and
	// Stats.Queue counts that.
	RateLimiter workqueue.RateLimiter[K]
	// Timeout ends the context of one call. Default: none.
	Timeout time.Duration
	// StopGrace is for how long calls that run when Run's context ends may go
	// on before their own context ends. When leadership is lost it does at
	// once. Default: none.
	StopGrace time.Duration
	// SyncTimeout is how long Run waits until everything that is watched has
	// been listed. Default: as long as it takes, for a server that is not there
	// yet. The function Run with a Leader waits for its informers before it stands for
	// election, for as long at most.
	SyncTimeout time.Duration
	// StuckAfter is how long one call may take before Healthy complains.
	// Default 10 min; negative: it never does.
	StuckAfter time.Duration
	// FairShare gives, while fresh changes keep coming, one turn of so many to
	// what the first lists held. Default: DefaultFairShare; negative: fresh changes always go
	// first.
	FairShare int
	// WithoutLeaderElection has the function Run begin with the controller in
	// every process, also where another one leads: for controllers that act on
	// nothing that another process acts on.
	WithoutLeaderElection bool
	// Logger receives what fails, and is what [Logger] returns in a call.
	// Default: slog.Default().
	Logger *slog.Logger
	// Tracer observes the changes and the calls; a panic of it is logged. Default: none.
	Tracer Tracer
}

// Defaults of Options.
const (
	DefaultBackoff    = 5 * time.Millisecond
	DefaultMaxBackoff = 30 * time.Second
	DefaultStuckAfter = 10 * time.Minute
	DefaultFairShare  = workqueue.DefaultFairShare
)

// checkUnit refuses what is too short to be meant, such as Timeout: 30, with which every
// call would find its context ended.
func checkUnit(controller, option string, value time.Duration) error {
	if value > 0 && value < time.Millisecond {
		return fmt.Errorf("controller %s: %s %v is below a millisecond: is it a number without a unit?", controller, option, value)
	}
	return nil
}

func (o *TypedOptions[K]) complete() error {
	if o.Name == "" {
		return errors.New("a controller needs a name: set controller.Options.Name")
	}
	for _, option := range []struct {
		name  string
		value time.Duration
	}{{"Backoff", o.Backoff}, {"MaxBackoff", o.MaxBackoff}, {"Timeout", o.Timeout}, {"StopGrace", o.StopGrace}, {"SyncTimeout", o.SyncTimeout}} {
		if option.value < 0 {
			return fmt.Errorf("controller %s: %s must not be negative: %v", o.Name, option.name, option.value)
		}
		if err := checkUnit(o.Name, option.name, option.value); err != nil {
			return err
		}
	}
	if err := checkUnit(o.Name, "StuckAfter", o.StuckAfter); err != nil {
		return err
	}
	if o.Workers < 0 {
		return fmt.Errorf("controller %s: Workers must not be negative: %d", o.Name, o.Workers)
	}
	if o.RateLimiter != nil && (o.Backoff != 0 || o.MaxBackoff != 0) {
		return fmt.Errorf("controller %s: set either Backoff and MaxBackoff or RateLimiter, which replaces them", o.Name)
	}
	o.Workers = max(o.Workers, 1)
	if o.Backoff == 0 {
		o.Backoff = DefaultBackoff
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = max(DefaultMaxBackoff, o.Backoff)
	}
	if o.MaxBackoff < o.Backoff {
		return fmt.Errorf("controller %s: MaxBackoff %v is shorter than Backoff %v", o.Name, o.MaxBackoff, o.Backoff)
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.Exponential[K](o.Backoff, o.MaxBackoff)
	}
	if o.StuckAfter == 0 {
		o.StuckAfter = DefaultStuckAfter
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("controller", o.Name)
	if o.Tracer != nil {
		o.Tracer = &containedTracer{tracer: o.Tracer, log: o.Logger}
	}
	return nil
}
