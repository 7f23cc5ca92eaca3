package health

import (
	"context"
	"errors"
	"fmt"
)

// Check returns an error that says what is wrong, or nil. It is called for each
// request, from several goroutines, and must return quickly and when ctx ends.
type Check func(ctx context.Context) error

// Checks are checks by name.
type Checks map[string]Check

// Func is a Check made of a function without a context, as the Healthy methods of
// controller.Controller and leader.Elector are.
func Func(healthy func() error) Check {
	return func(context.Context) error { return healthy() }
}

// Closed is a Check that fails until the channel is closed: the Synced of an
// informer or a controller, for instance.
func Closed(channel <-chan struct{}) Check {
	return func(context.Context) error {
		select {
		case <-channel:
			return nil
		default:
			return errors.New("it has not happened yet")
		}
	}
}

// Running is a Check that fails when ctx has ended: with it in readiness, a process
// that shuts down gets no new requests.
func Running(ctx context.Context) Check {
	return func(context.Context) error {
		if ctx.Err() != nil {
			return fmt.Errorf("shutting down: %w", context.Cause(ctx))
		}
		return nil
	}
}

// run calls a check. One that panics has failed.
func (c Check) run(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the check panicked: %v", r)
		}
	}()
	if c == nil {
		return errors.New("the check is nil")
	}
	return c(ctx)
}
