package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// timeLimit ends the context of one request when rest.Config.Timeout is over. All its
// methods may be called on nil: no limit.
type timeLimit struct {
	over   error // the cause of the context's end when the time is
	cause  func() error
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// limitTime returns the context of a request. It is ctx for watches and streams, which
// last for as long as their callers want.
func limitTime(ctx context.Context, q *request, timeout time.Duration) (context.Context, *timeLimit) {
	if timeout <= 0 || q.stream || q.verb == "watch" {
		return ctx, nil
	}
	limited, cancel := context.WithCancelCause(ctx)
	over := fmt.Errorf("the Timeout of the rest.Config, %v, is over: %w", timeout, context.DeadlineExceeded)
	return limited, &timeLimit{
		over:   over,
		cause:  func() error { return context.Cause(limited) },
		timer:  time.AfterFunc(timeout, func() { cancel(over) }),
		cancel: cancel,
	}
}

// explain adds that the time is over to the error of a read, if it is. An answer that ends
// then is not known to be whole: a server ends the answer of a request that was given up.
func (l *timeLimit) explain(err error) error {
	switch {
	case l == nil || !errors.Is(l.cause(), l.over) || errors.Is(err, l.over):
		return err
	case errors.Is(err, io.EOF):
		return l.over
	}
	return fmt.Errorf("%w (%w)", l.over, err)
}

// lift lets the request go on for as long as its caller wants.
func (l *timeLimit) lift() {
	if l != nil {
		l.timer.Stop()
	}
}

// end releases what the limit holds. The request has ended.
func (l *timeLimit) end() {
	if l != nil {
		l.timer.Stop()
		l.cancel(nil)
	}
}
