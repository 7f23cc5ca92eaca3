package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
)

// Mistakes of the program.
var (
	errAgain = errors.New("a controller runs once; make another")
	errLate  = errors.New("say what is to be watched before Run")
)

// errSourceEnded is the end of an informer under a controller that goes on.
var errSourceEnded = errors.New("the informer has stopped while it was needed")

// Run calls the ReconcileFunc until ctx ends, once everything that is watched
// has been listed: a controller that acts on an incomplete cache creates what
// exists already. Another client has to start the informers; the function [Run]
// does. It blocks, and when it returns no call runs, no handler is called any
// more, and the queue is shut down. The error is nil if ctx has ended.
func (c *Controller) Run(ctx context.Context) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sources, err := c.begin(cancel)
	if err == nil {
		defer c.finish()
		err = c.run(running, cancel, sources)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("controller %s: %w", c.opts.Name, err)
	}
	return nil
}

func (c *Controller) run(ctx context.Context, cancel context.CancelCauseFunc, sources []source) error {
	registrations, err := register(sources)
	defer remove(registrations)
	if err != nil {
		return err
	}
	if err := c.awaitSources(ctx, sources, registrations); err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	for n, r := range registrations {
		if r != nil {
			watching.Go(func() { endWith(ctx, r, func(err error) { cancel(sources[n].failed(err)) }) })
		}
	}
	c.work(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errSourceEnded) || errors.Is(cause, errLate) {
		return cause
	}
	return nil
}

func (c *Controller) begin(end context.CancelCauseFunc) ([]source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != idle {
		return nil, errAgain
	}
	c.phase, c.end = running, end
	return c.sources, nil
}

func (c *Controller) finish() {
	c.mu.Lock()
	c.phase = stopped
	c.mu.Unlock()
	c.queue.ShutDown()
}

// endWith calls end when the handler is not called any more before ctx ends.
func endWith(ctx context.Context, r *informer.Registration, end func(error)) {
	select {
	case <-ctx.Done():
	case <-r.Done():
		end(errors.Join(errSourceEnded, r.Err()))
	}
}

func register(sources []source) ([]*informer.Registration, error) {
	registrations := make([]*informer.Registration, len(sources))
	for n, s := range sources {
		if s.start == nil {
			continue
		}
		r, err := s.start()
		if err != nil {
			return registrations, s.failed(err)
		}
		registrations[n] = r
	}
	return registrations, nil
}

// remove ends the handlers and waits for their calls.
func remove(registrations []*informer.Registration) {
	for _, r := range registrations {
		if r != nil {
			<-r.Remove()
		}
	}
}

// awaitSources returns an error if a source ends or takes too long, and nil if
// ctx ends.
func (c *Controller) awaitSources(ctx context.Context, sources []source, registrations []*informer.Registration) error {
	var timeout <-chan time.Time
	if c.opts.SyncTimeout > 0 {
		timer := time.NewTimer(c.opts.SyncTimeout)
		defer timer.Stop()
		timeout = timer.C
	}
	for n, s := range sources {
		var ended <-chan struct{}
		if r := registrations[n]; r != nil {
			ended = r.Done()
		}
		select {
		case <-s.ready(registrations[n]):
		case <-ctx.Done():
			return nil
		case <-ended:
			return s.failed(errSourceEnded)
		case <-timeout:
			return fmt.Errorf("no complete list after %v of %s: is the informer started, and may it list?",
				c.opts.SyncTimeout, strings.Join(missing(sources[n:], registrations[n:]), ", "))
		}
	}
	return nil
}

// missing names the sources that are not synced.
func missing(sources []source, registrations []*informer.Registration) (names []string) {
	for n, s := range sources {
		select {
		case <-s.ready(registrations[n]):
		default:
			names = append(names, s.name)
		}
	}
	return names
}

// work runs the workers until ctx ends and all calls have returned.
func (c *Controller) work(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	close(c.synced)
	calls, stop := c.callContext(ctx)
	defer stop()
	for range c.opts.Workers {
		c.workers.Go(func() { c.worker(ctx, calls) })
	}
	<-ctx.Done()
	c.workers.Wait()
}

// callContext returns the context of calls. It ends with ctx, or StopGrace
// later; when leadership was lost they end at once.
func (c *Controller) callContext(ctx context.Context) (calls context.Context, stop func()) {
	if c.opts.StopGrace == 0 {
		return ctx, func() {}
	}
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var mu sync.Mutex
	var timer *time.Timer
	unhook := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if errors.Is(cause, leader.ErrLost) {
			cancel(cause)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		timer = time.AfterFunc(c.opts.StopGrace, func() { cancel(cause) })
	})
	return calls, func() {
		unhook()
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
	}
}

// worker reconciles keys until ctx ends. A call that ends its goroutine gets
// the controller another worker.
func (c *Controller) worker(ctx, calls context.Context) {
	finished := false
	defer func() {
		if !finished {
			c.workers.Go(func() { c.worker(ctx, calls) })
		}
	}()
	for {
		key, ok := c.queue.Get(ctx)
		if !ok {
			finished = true
			return
		}
		c.reconcile(calls, key)
	}
}
