package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client/informer"
)

// Source is anything that has to be complete before the workers begin: an
// informer that is read but not watched, for instance.
type Source interface {
	// Synced is closed when it is.
	Synced() <-chan struct{}
}

// Registration is one source of a controller, as For, Owns, Watch, Handle and
// RequireSync return it. Its methods may be called concurrently.
type Registration struct {
	name string
	// start adds the handler to the informer; nil if there is none.
	start func() (*informer.Registration, error)
	// stop is called after the handler's last call, and blocks until it makes none either; nil:
	// nothing.
	stop func()
	// source is what to wait for if there is no handler.
	source Source
	// informer is what Consistent asks; nil: the source is none.
	informer versioned
	// foreign has until when versions of other sources are not compared with this one's. The
	// controller's mu guards it.
	foreign map[*Registration]time.Time
	// forget takes the registration from its controller.
	forget func(*Registration)

	removeOnce sync.Once
	removed    chan struct{} // closed by Remove
	synced     chan struct{} // closed by the goroutine that serves it
	done       chan struct{} // closed when no call of the handler runs or follows
}

func newRegistration(name string, start func() (*informer.Registration, error), source Source) *Registration {
	return &Registration{
		name: name, start: start, source: source,
		foreign: map[*Registration]time.Time{},
		removed: make(chan struct{}), synced: make(chan struct{}), done: make(chan struct{}),
	}
}

// invalidRegistration is a source that ends Run with an error.
func invalidRegistration(name string, err error) *Registration {
	return newRegistration(name, func() (*informer.Registration, error) { return nil, err }, nil)
}

// Synced is closed when the source has been listed and, if it has a handler,
// the handler was called with all that the list held. For a source that is
// added while the controller runs this is the way to know that its keys are in
// the queue.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// Remove ends the registration: its handler is not called any more, and Run
// does not wait for it. The channel is closed when the last call has returned;
// the handler itself must not wait for it. Keys that are in the queue stay
// there. The informer runs on: stop it, if nothing else needs it, after the
// channel is closed; an informer that ends under a registration ends Run.
func (r *Registration) Remove() <-chan struct{} {
	r.removeOnce.Do(func() {
		close(r.removed)
		r.forget(r)
	})
	return r.done
}

// failed is the error of a source, and the cause with which it ends Run.
func (r *Registration) failed(err error) error { return sourceError{r.name, err} }

type sourceError struct {
	name string
	err  error
}

// Error implements error.
func (e sourceError) Error() string { return e.name + ": " + e.err.Error() }

// Unwrap returns what is wrong with the source.
func (e sourceError) Unwrap() error { return e.err }

// errSourceEnded is the end of an informer under a controller that goes on.
var errSourceEnded = errors.New("the informer has stopped while it was needed")

// register adds a source. While the controller runs it is started at once.
func (c *TypedController[K]) register(r *Registration) *Registration {
	r.forget = c.forget
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.phase {
	case idle:
		c.sources = append(c.sources, r)
	case running:
		c.sources = append(c.sources, r)
		c.start(r)
		if isClosed(c.synced) { // before, the start of the controller is logged as a whole
			over := c.lifetime.Done()
			c.serving.Go(func() { c.logSlowSource(r, over) })
		}
	case stopped:
		close(r.done)
	}
	return r
}

// start serves a source on a goroutine of its own. It needs c.mu and that the
// controller runs: so none is added to c.serving once Run waits for it.
func (c *TypedController[K]) start(r *Registration) {
	end, over := c.end, c.lifetime.Done()
	c.serving.Go(func() {
		defer close(r.done)
		if err := r.serve(over); err != nil {
			end(r.failed(err))
		}
	})
}

// forget takes a source out. One that was never started is done by that.
func (c *TypedController[K]) forget(r *Registration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := slices.Index(c.sources, r); n >= 0 {
		c.sources = slices.Delete(c.sources, n, n+1)
		if c.phase == idle {
			close(r.done)
		}
	}
}

// serve keeps the handler with the informer until it is removed or over is
// closed. An error means that the source ended before.
func (r *Registration) serve(over <-chan struct{}) error {
	var ended <-chan struct{}
	synced, reason := (<-chan struct{})(nil), func() error { return nil }
	if r.start != nil {
		handler, err := r.start()
		if err != nil {
			return err
		}
		defer func() {
			<-handler.Remove()
			if r.stop != nil {
				r.stop()
			}
		}()
		synced, ended, reason = handler.Synced(), handler.Done(), handler.Err
	} else {
		synced = r.source.Synced()
	}
	for {
		select {
		case <-over:
			return nil
		case <-r.removed:
			return nil
		case <-synced:
			close(r.synced)
			synced = nil
		case <-ended:
			return errors.Join(errSourceEnded, reason())
		}
	}
}

// awaitSources waits until all sources are synced, those too that are added
// meanwhile. It returns an error if that takes too long, and nil if ctx ends.
func (c *TypedController[K]) awaitSources(ctx context.Context) error {
	var timeout <-chan time.Time
	if c.opts.SyncTimeout > 0 {
		timer := time.NewTimer(c.opts.SyncTimeout)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		missing := c.unsynced()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-missing[0].synced:
		case <-missing[0].removed:
		case <-ctx.Done():
			return nil
		case <-timeout:
			return fmt.Errorf("no complete list after %v of %s: is the informer started, and may it list?", c.opts.SyncTimeout, names(missing))
		}
	}
}

// syncTimeout is for the function Run, which waits before an election.
func (c *TypedController[K]) syncTimeout() time.Duration { return c.opts.SyncTimeout }

// unsynced returns the sources that the workers wait for.
func (c *TypedController[K]) unsynced() (missing []*Registration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.sources {
		if !isClosed(r.synced) {
			missing = append(missing, r)
		}
	}
	return missing
}

func names(sources []*Registration) string {
	all := make([]string, len(sources))
	for n, r := range sources {
		all[n] = r.name
	}
	return strings.Join(all, ", ")
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
