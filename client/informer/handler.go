package informer

import (
	"context"
	"errors"
	"time"
)

// Handler is called for each change of an object. Calls come one at a time,
// from the handler's own goroutine. For one object they come in order, and each
// starts from the state that the one before it left; between objects there is
// no order. A slow handler gets fewer calls: states that newer ones have
// replaced are skipped, but never a deletion.
//
// A call that panics is logged and counted (HandlerStats.Panics), and not repeated:
// the handler misses that change, and goes on with the next one.
//
// Objects are shared with the cache and other handlers: a handler must not
// change them.
type Handler[T any] interface {
	// OnAdd is called for an object that is new to the handler. initial: it was
	// there before the handler, or before the informer had its first complete
	// list.
	OnAdd(obj T, initial bool)
	// OnUpdate is called for a new state of the same object. When another object
	// took its name, OnDelete and OnAdd are called, even if the deletion was
	// missed. An event, or a list, that shows the resourceVersion which the cache has
	// is no new state. With HandlerOptions.Resync old and obj may be the same.
	OnUpdate(old, obj T)
	// OnDelete is called when an object was deleted. finalStateUnknown: the
	// deletion itself was missed, and obj is only the last state that was seen.
	OnDelete(obj T, finalStateUnknown bool)
}

// HandlerFuncs is a Handler made of functions, each of which may be nil.
type HandlerFuncs[T any] struct {
	Add    func(obj T, initial bool)
	Update func(old, obj T)
	Delete func(obj T, finalStateUnknown bool)
}

// OnAdd implements Handler.
func (h HandlerFuncs[T]) OnAdd(obj T, initial bool) {
	if h.Add != nil {
		h.Add(obj, initial)
	}
}

// OnUpdate implements Handler.
func (h HandlerFuncs[T]) OnUpdate(old, obj T) {
	if h.Update != nil {
		h.Update(old, obj)
	}
}

// OnDelete implements Handler.
func (h HandlerFuncs[T]) OnDelete(obj T, finalStateUnknown bool) {
	if h.Delete != nil {
		h.Delete(obj, finalStateUnknown)
	}
}

// HandlerOptions configures one handler.
type HandlerOptions struct {
	// Name stands in logs and statistics. Default: none.
	Name string
	// Resync is how often the handler is given every object again, as an
	// update whose old and new state are the same. It costs the server
	// nothing. Default: Options.Resync of the factory; negative: never.
	Resync time.Duration
	// MaxUnmergedEvents, if above zero, keeps every single event until the
	// handler has seen it, but no more than that many. What there was when the
	// handler was added and resyncs do not count. Nor may one object have more
	// events that the cache does not show yet. When they are exceeded, the
	// handler is not called any more: an error is logged, Registration.Done is
	// closed, Registration.Err and HandlerStats.Err are ErrOverflow, and
	// Stats.FailedHandlers counts it. Default: a slow handler sees fewer, newer
	// states, and its queue is bounded by the number of objects.
	MaxUnmergedEvents int
}

var (
	// ErrStopped is returned for an informer that has been stopped: it is not
	// started again.
	ErrStopped = errors.New("the informer has been stopped")
	// ErrOverflow ends a handler with HandlerOptions.MaxUnmergedEvents that fell too
	// far behind.
	ErrOverflow = errors.New("the handler fell behind by more events than MaxUnmergedEvents allows")
)

// Registration is one handler of one informer. All methods may be called
// concurrently, from the handler too.
type Registration struct {
	synced, ended <-chan struct{}
	remove        func()
	err           func() error
	stats         func() HandlerStats
	flush         func() <-chan struct{}
}

// HandlerStats is what a handler's queue did so far.
type HandlerStats struct {
	Name      string
	Queued    int           // objects with calls that wait; events with MaxUnmergedEvents
	Lag       time.Duration // for how long calls have been waiting or running without a pause; 0 when idle
	Busy      time.Duration // the total of such times: what calls took
	Delivered int64         // calls that returned
	Coalesced int64         // events that newer ones have replaced
	Panics    int64         // calls that panicked
	Err       error         // ErrOverflow if that is why the handler is not called any more
}

// HasSynced reports whether the handler has been called for every object of the
// informer's first complete list or, if it came later, of what was there then.
func (r *Registration) HasSynced() bool {
	select {
	case <-r.synced:
		return true
	default:
		return false
	}
}

// Synced is closed when HasSynced becomes true. It never is for a handler that
// was removed before, or whose informer stopped before: wait for Done, too.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// Flush waits until the handler has been called for everything that the cache shows at the
// call: for state that a handler keeps and others read. It returns the cause of ctx when that
// ends before, and what Err says, or ErrStopped, if no call is made any more. The handler itself must not call it.
func (r *Registration) Flush(ctx context.Context) error {
	select {
	case <-r.flush():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.ended:
		if err := r.err(); err != nil {
			return err
		}
		return ErrStopped
	}
}

// Remove ends the calls: none begins after it has returned. The channel it
// returns is closed when the call that is perhaps running has returned, too; a
// handler that removes itself must not wait for that. Removing twice is
// harmless.
func (r *Registration) Remove() <-chan struct{} {
	r.remove()
	return r.ended
}

// Done is closed when no call runs any more and none will: after Remove, after
// ErrOverflow, and after the informer has stopped.
func (r *Registration) Done() <-chan struct{} { return r.ended }

// Err is ErrOverflow if that is why the handler was removed.
func (r *Registration) Err() error { return r.err() }

// Stats returns what the handler's queue did so far.
func (r *Registration) Stats() HandlerStats { return r.stats() }
