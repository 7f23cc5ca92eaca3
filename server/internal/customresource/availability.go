package customresource

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/webhookclient"
)

// unavailableFor is how long the failure of a webhook that could not be reached, or
// that timed out, is the answer to further conversions.
const unavailableFor = time.Second

// availability remembers for a moment that a webhook does not answer, so that it is
// not called, and waited for, by one request after the other. It is safe for
// concurrent use.
type availability struct {
	mu         sync.Mutex // never held during a call
	calls      int        // under way
	failure    error      // nil if the webhook is available
	until      time.Time  // of failure
	lastAnswer time.Time
}

// begin counts a call that record ends. It refuses the call if the webhook has just
// been found unavailable, or if maxConversions calls are under way.
func (a *availability) begin() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure != nil && time.Now().Before(a.until) {
		return a.failure
	}
	if a.calls >= maxConversions {
		return apierrors.NewTooManyRequests("too many calls of a conversion webhook are under way", 1)
	}
	a.calls++
	return nil
}

// record notes how a call ended. A call without an answer is the webhook's failure,
// unless ctx ended before, or the webhook has answered another call meanwhile: then
// the objects of this one may be at fault.
func (a *availability) record(ctx context.Context, began time.Time, err error) {
	var answered *webhookclient.AnswerError
	var unresolved *webhookclient.ResolveError
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls--
	switch {
	case err == nil || errors.As(err, &answered):
		a.lastAnswer, a.failure = time.Now(), nil
	case errors.As(err, &unresolved), a.lastAnswer.After(began):
	case ctx.Err() != nil && !errors.Is(err, errConversionTimeout):
	default:
		a.failure, a.until = err, time.Now().Add(unavailableFor)
	}
}

// tryPost posts a review, unless too many calls are under way, or one has just found the
// webhook unavailable.
func (c *hook) tryPost(ctx context.Context, body []byte, limit int) ([]byte, error) {
	if err := c.health.begin(); err != nil {
		return nil, err
	}
	began := time.Now()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	answer, err := c.client.Post(traced, nil, body, limit)
	cause := context.Cause(ctx)
	switch {
	case err == nil:
	case errors.Is(cause, errConversionTimeout):
		err = c.describeTimeout(cause, connected.Load())
	case errors.Is(err, context.DeadlineExceeded):
		err = c.describeTimeout(errRequestTimeout, connected.Load())
	}
	c.health.record(ctx, began, err)
	return answer, err
}

// describeTimeout says what was waited for in vain.
func (c *hook) describeTimeout(cause error, connected bool) error {
	if connected {
		return fmt.Errorf("%s: %w", c.client.URL(), cause)
	}
	return fmt.Errorf("%s: there was no connection: %w", c.client.URL(), cause)
}

// errConversionTimeout is the cause with which a conversion's context ends.
var errConversionTimeout = fmt.Errorf("it did not answer within %v", conversionTimeout)

// errRequestTimeout stands for context.DeadlineExceeded, which would be taken for the
// store's silence.
var errRequestTimeout = errors.New("it did not answer within the request's time limit")
