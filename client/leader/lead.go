package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// releaseTimeout bounds what releasing adds to a stop when the server is away: two attempts,
// of which each is long enough for a server that takes more than a second.
const releaseTimeout = 4 * time.Second

// lead calls work and renews until it has returned or leadership is lost.
func (e *Elector) lead(ctx context.Context, work func(ctx context.Context) error) error {
	// The Lease is kept for as long as work runs, also when ctx has ended.
	keeping, stopKeeping := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopKeeping(nil)
	leading, stopLeading := context.WithCancelCause(withResourceVersion(ctx, e.own()))
	defer stopLeading(nil)
	lose := func(why error) {
		e.lose(why)
		stopKeeping(why) // first: the work that stopLeading ends must not be taken for the reason
		stopLeading(why)
	}
	// The timer ends the work even while a renewal hangs.
	deadline := time.AfterFunc(e.remaining(), func() { lose(e.overdue()) })
	defer deadline.Stop()

	result := e.start(leading, stopLeading, work)
	returned := make(chan struct{})
	var err error
	go func() {
		err = <-result
		close(returned)
		stopKeeping(nil)
	}()
	e.keep(keeping, deadline, lose)
	<-returned
	return e.stop(ctx, err, context.Cause(keeping))
}

// start calls work on a goroutine of its own, and returns the channel that gets what work has returned. If
// it has not returned, but panicked or ended its goroutine, start ends the context as well: what work has
// begun may go on.
func (e *Elector) start(leading context.Context, stopLeading context.CancelCauseFunc, work func(ctx context.Context) error) <-chan error {
	result := make(chan error, 1)
	go func() {
		var err error
		failure := fmt.Errorf("%w: it called runtime.Goexit", ErrPanicked)
		defer func() {
			if failure != nil {
				e.opts.Logger.Error("not leading any more", "error", failure)
				stopLeading(failure)
				err = failure
			}
			result <- err
		}()
		failure = contain.Call("it", func() { err = work(leading) }) // unless it does not get here
		if failure != nil {
			failure = fmt.Errorf("%w: %w", ErrPanicked, failure)
		}
	}()
	return result
}

// keep renews until ctx ends or leadership is lost.
func (e *Elector) keep(ctx context.Context, deadline *time.Timer, lose func(error)) {
	ticker := time.NewTicker(e.opts.RetryPeriod)
	defer ticker.Stop()
	for failed, timedOut := false, false; ; {
		if !timedOut { // a renewal that was too slow is repeated at once
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		if e.remaining() <= 0 { // the timer stood still with the machine
			lose(e.overdue())
			return
		}
		attempt, cancel := e.attempt(ctx, e.leaderLimit())
		held, err := e.claim(attempt, true)
		timedOut = attempt.Err() != nil && !held
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case held:
			deadline.Reset(e.remaining())
		case errors.Is(err, ErrLost):
			lose(err)
			return
		case !failed:
			e.opts.Logger.Warn("the lease was not renewed, trying again", "error", err)
		}
		if timedOut {
			e.leaveConnection()
		}
		failed = !held
	}
}

// remaining is for how long this candidate may lead without another renewal:
// counted from before the last one was sent, because the others may have seen
// it no sooner.
func (e *Elector) remaining() time.Duration {
	e.mu.Lock()
	at := e.renewed
	e.mu.Unlock()
	return e.opts.RenewDeadline - e.since(at)
}

func (e *Elector) overdue() error {
	return fmt.Errorf("%w: the lease was not renewed for %v", ErrLost, e.opts.RenewDeadline)
}

func (e *Elector) lose(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.leading {
		return
	}
	e.leading, e.lostAt = false, e.now()
	e.stats.Lost++
	e.opts.Logger.Warn("not leading any more", "error", why)
}

// stop ends the leadership after the work has returned with err. cause is why
// renewing ended.
func (e *Elector) stop(ctx context.Context, err, cause error) error {
	e.mu.Lock()
	e.leading = false
	e.mu.Unlock()
	if errors.Is(cause, ErrLost) {
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrLost) {
			return errors.Join(cause, err)
		}
		return cause
	}
	if e.opts.KeepOnStop {
		return err
	}
	if errors.Is(err, ErrPanicked) { // its goroutines may not have ended
		return errors.Join(err, ErrNotReleased)
	}
	return errors.Join(err, e.releaseInTime(context.WithoutCancel(ctx)))
}

// releaseInTime releases the Lease, again if the first attempt was not answered.
func (e *Elector) releaseInTime(ctx context.Context) (err error) {
	const attempts = 2
	for range attempts {
		attempt, cancel := e.attempt(ctx, releaseTimeout/attempts)
		err = e.release(attempt)
		timedOut := attempt.Err() != nil
		cancel()
		if err == nil || !timedOut {
			break
		}
		e.leaveConnection()
	}
	return err
}
