package leader

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
)

// Options configures an Elector. Candidates for the same Lease should have
// the same durations.
type Options struct {
	// Namespace and Name are those of the Lease, which is created if it does
	// not exist. Both are required.
	Namespace, Name string
	// Identity is the candidate's. No two processes may have the same at the
	// same time; a process that is started again with the identity of one that
	// is surely dead, the pod of a StatefulSet for instance, leads again at
	// once. Default: the host's name and a random part.
	Identity string
	// LeaseDuration is how long the others wait, after they have last seen the
	// leader renew, before one of them leads: what a crash costs. The Lease
	// holds whole seconds, rounded up. Default 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long after its last renewal a leader that cannot
	// renew has its context ended. It must be shorter than LeaseDuration. One
	// attempt to renew has half of it at most, so that a request that hangs leaves
	// time for another. Default 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is how often a leader renews, and how often the others look,
	// a little less regularly. It must be shorter than RenewDeadline by more
	// than a fifth of itself. Default 2 s.
	RetryPeriod time.Duration
	// KeepOnStop leaves the Lease to run out when Run ends. Default: it is
	// released, so that another candidate leads without waiting.
	KeepOnStop bool
	// OnNewLeader is called when the identity in the Lease has changed, to this
	// candidate's own too. It is called by the goroutine that renews, and must
	// return quickly; a panic is logged. Default: none.
	OnNewLeader func(identity string)
	// Logger receives what happens. Default: slog.Default().
	Logger *slog.Logger
}

// Defaults of Options, which are those of Kubernetes' own components.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// jitter is by how much of itself a candidate's RetryPeriod varies.
const jitter = 0.2

func (o *Options) complete() error {
	if o.Namespace == "" || o.Name == "" {
		return fmt.Errorf("leader election needs the namespace and the name of a Lease, not %q and %q", o.Namespace, o.Name)
	}
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{
		{&o.LeaseDuration, DefaultLeaseDuration}, {&o.RenewDeadline, DefaultRenewDeadline}, {&o.RetryPeriod, DefaultRetryPeriod},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	switch {
	case o.LeaseDuration <= o.RenewDeadline:
		return fmt.Errorf("leader election: a lease duration of %v must be longer than the renew deadline of %v", o.LeaseDuration, o.RenewDeadline)
	case o.RetryPeriod < time.Millisecond:
		return fmt.Errorf("leader election: a retry period of %v is too short: at least a millisecond", o.RetryPeriod)
	case float64(o.RenewDeadline) <= (1+jitter)*float64(o.RetryPeriod):
		return fmt.Errorf("leader election: a renew deadline of %v must be longer than %v times the retry period of %v", o.RenewDeadline, 1+jitter, o.RetryPeriod)
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("leader election: no identity was given, and the host has no name: %w", err)
		}
		o.Identity = host + "_" + uuid.NewString()
	}
	if o.OnNewLeader == nil {
		o.OnNewLeader = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("lease", o.Namespace+"/"+o.Name, "identity", o.Identity)
	return nil
}
