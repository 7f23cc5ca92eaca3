package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client/leader"
)

var errAgain = errors.New("a controller runs once; make another")

// Run calls the ReconcileFunc until ctx ends, once everything that is watched
// has been listed: a controller that acts on an incomplete cache creates what
// exists already. Run starts no informer: the caller does, or the function
// [Run]. It blocks, and when it returns no call runs, no handler is called any
// more, and the queue is shut down. The error is nil if ctx has ended.
func (c *TypedController[K]) Run(ctx context.Context) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.RequireResourceVersion(leader.ResourceVersion(ctx))
	err := c.begin(cancel)
	if err == nil {
		err = c.run(running)
		c.finish()
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("controller %s: %w", c.opts.Name, err)
	}
	return nil
}

// run returns when ctx has ended and all calls have returned: with an error if
// a source is why ctx ended.
func (c *TypedController[K]) run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	begun, end := context.WithCancel(ctx)
	defer end()
	background.Go(func() { c.logSlowStart(begun) })
	if err := c.awaitSources(ctx); err != nil {
		return err
	}
	c.work(ctx)
	if cause := context.Cause(ctx); errors.As(cause, new(sourceError)) {
		return cause
	}
	return nil
}

// slowStart is how long a controller may wait for its sources, or have none, before it
// logs that.
const slowStart = 10 * time.Second

// logSlowStart logs, once, why the controller calls nothing some time after its start.
func (c *TypedController[K]) logSlowStart(ctx context.Context) {
	timer := time.NewTimer(slowStart)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	c.mu.Lock()
	watching := len(c.sources)
	c.mu.Unlock()
	if missing := c.unsynced(); len(missing) > 0 && !isClosed(c.synced) {
		c.opts.Logger.Warn("the controller waits for informers that have no complete list: if they were not started, set RunOptions.Factory, or call factory.Start",
			"informers", names(missing), "waited", slowStart)
	} else if stats := c.queue.Stats(); watching == 0 && stats.Adds == 0 {
		// No warning: a program may add all keys itself, and have none yet.
		c.opts.Logger.Info("the controller watches nothing, and no key was added: call controller.For, Owns or Watch, unless the program calls Add")
	}
}

// logSlowSource logs, once, that a source which was added while the workers run delivers
// nothing yet: its informer may have been made after the last call of factory.Start.
func (c *TypedController[K]) logSlowSource(r *Registration, over <-chan struct{}) {
	timer := time.NewTimer(slowStart)
	defer timer.Stop()
	select {
	case <-over:
	case <-r.removed:
	case <-r.synced:
	case <-timer.C:
		c.opts.Logger.Warn("an informer that was added while the controller runs has no complete list: if it was not started, call factory.Start again",
			"informer", r.name, "waited", slowStart)
	}
}

// begin starts the sources. end is called with what is wrong with one of them.
func (c *TypedController[K]) begin(end context.CancelCauseFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != idle {
		return errAgain
	}
	c.phase, c.end = running, end
	c.lifetime, c.endLifetime = context.WithCancel(context.Background())
	for _, r := range c.sources {
		c.start(r)
	}
	return nil
}

// finish removes the handlers, after the last call of the ReconcileFunc: calls
// that Options.StopGrace lets run still see changes.
func (c *TypedController[K]) finish() {
	c.mu.Lock()
	c.phase = stopped
	c.endLifetime()
	c.mu.Unlock()
	c.serving.Wait()
	c.queue.ShutDown()
}

// work runs the workers until ctx ends and all calls have returned.
func (c *TypedController[K]) work(ctx context.Context) {
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
func (c *TypedController[K]) callContext(ctx context.Context) (calls context.Context, stop func()) {
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
func (c *TypedController[K]) worker(ctx, calls context.Context) {
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
