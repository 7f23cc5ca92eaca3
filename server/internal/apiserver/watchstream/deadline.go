package watchstream

import (
	"context"
	"time"
)

// lazyDeadline is a context that ends at a deadline, too. It makes a timer, and an entry in
// its parent, only if something waits for its end: most slots are free. It is used by one
// goroutine.
type lazyDeadline struct {
	context.Context
	deadline time.Time
	cancel   context.CancelFunc // nil until something waits
}

// Deadline implements context.Context.
func (x *lazyDeadline) Deadline() (deadline time.Time, ok bool) { return x.deadline, true }

// Done implements context.Context.
func (x *lazyDeadline) Done() <-chan struct{} {
	if x.cancel == nil {
		x.Context, x.cancel = context.WithDeadline(x.Context, x.deadline)
	}
	return x.Context.Done()
}

// stop releases what Done has made.
func (x *lazyDeadline) stop() {
	if x.cancel != nil {
		x.cancel()
	}
}
