package nodelifecycle

import (
	"log/slog"
	"time"
)

// Options configures a Controller.
type Options struct {
	// GracePeriod is how long a node's lease may stay unchanged before the
	// node is taken for unreachable. Default 40 s.
	GracePeriod time.Duration
	// CheckInterval is how often each node is looked at. Default 5 s, never
	// more than GracePeriod.
	CheckInterval time.Duration
	// Quarantine is how long a node must be gone before the pods that were
	// bound to it are removed. Default 40 s.
	Quarantine time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger receives what operators should see. Default slog.Default().
	Logger *slog.Logger
}

func (o *Options) ensureDefaults() {
	if o.GracePeriod <= 0 {
		o.GracePeriod = 40 * time.Second
	}
	if o.CheckInterval <= 0 {
		o.CheckInterval = 5 * time.Second
	}
	o.CheckInterval = min(o.CheckInterval, o.GracePeriod)
	if o.Quarantine <= 0 {
		o.Quarantine = 40 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}
