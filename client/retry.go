package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client/internal/ratelimit"
	"github.com/levelwire/levelwire/client/internal/transport"
)

// RetryOptions says which refusals a Client repeats by itself: 429 for every verb,
// 503 for reads, both only with a Retry-After. A watch is never repeated: its caller
// has a back-off of its own.
//
// Clients that were refused in the same second do not come back in the same second:
// the client waits for as long as Retry-After says, and then for a random time of at
// most as long, twice as long after the second refusal, and so on.
type RetryOptions struct {
	// Max is how often one request is repeated. Default 10; negative: never.
	Max int
	// MaxWait bounds how much of Retry-After is waited for, and the random time that
	// is added. Default 30 s. Watches of informers, and what their lists wait for
	// beyond Max, have reflector.Backoff.Max for it.
	MaxWait time.Duration
}

// RateLimiter limits how many requests a Client sends. *rate.Limiter of
// golang.org/x/time/rate is one, and so are the limiters of client-go's
// util/flowcontrol.
type RateLimiter interface {
	// Wait blocks until one request may be sent. It returns an error if the context
	// ends before.
	Wait(ctx context.Context) error
}

// rateLimiterOf returns what the configuration says of limits; nil: there are none.
// client-go would let 5 requests a second pass by default.
func rateLimiterOf(cfg *rest.Config) RateLimiter {
	if cfg.RateLimiter != nil {
		return cfg.RateLimiter
	}
	if cfg.QPS <= 0 {
		return nil
	}
	burst := cfg.Burst
	if burst <= 0 {
		burst = rest.DefaultBurst
	}
	return rate.NewLimiter(rate.Limit(cfg.QPS), burst)
}

var errLimiterPanicked = errors.New("it panicked")

// throttle waits for the rate limiter. Watches are exempt, as in client-go: a
// program has few, they last, and one that is late misses nothing but time. So are the
// requests of leader election: a leader that has many others would lose its Lease.
func (c *Client) throttle(ctx context.Context, q *request) (time.Duration, error) {
	if c.opts.RateLimiter == nil || q.verb == "watch" || ratelimit.IsExempt(ctx) {
		return 0, nil
	}
	started := time.Now()
	err := errLimiterPanicked
	c.contain("RateLimiter", func() { err = c.opts.RateLimiter.Wait(ctx) })
	waited := time.Since(started)
	c.counters.limiterWait.Add(int64(waited))
	if err != nil {
		return waited, fmt.Errorf("client's rate limiter: %w", err)
	}
	return waited, nil
}

// trustsAnother reports, once, whether the server's certificate, which was refused,
// may be accepted now, because the file of CAs has changed. Nothing was sent.
func (x *transaction) trustsAnother(err error) bool {
	if x.reauthenticated || !transport.UntrustedServer(err) || x.client.transport.Generation() == x.credentials {
		return false
	}
	x.reauthenticated = true
	return true
}

// repeat decides whether a refused request is sent again, and after how long.
//
//   - 401 says that nothing was done: one more attempt, if the credentials may be
//     others by now.
//   - 415 for a protobuf body and 406 for a request that accepts protobuf: in JSON,
//     at once, and so for the resource from then on.
//   - 429 says that nothing was done, whatever the verb. One that does not say when
//     to come back, as of an eviction over its budget, is the answer.
//   - 503 may come from something between the client and a server that did act, so
//     only reads are repeated.
func (x *transaction) repeat(resp *http.Response) (bool, time.Duration) {
	c, q := x.client, x.request
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		again := !x.reauthenticated && (c.headerChanges || c.transport.Generation() != x.credentials)
		x.reauthenticated = true
		return again, 0
	case http.StatusUnsupportedMediaType:
		if x.body && c.refusals.RefuseBody(q.gvr) {
			c.opts.Logger.Info("the server does not read protobuf; the client sends JSON", "resource", q.gvr.GroupResource().String())
		}
		return x.body, 0
	case http.StatusNotAcceptable:
		if x.accept && c.refusals.RefuseAccept(q.gvr) {
			c.opts.Logger.Info("the server does not answer in protobuf; the client asks for JSON", "resource", q.gvr.GroupResource().String())
		}
		return x.accept, 0
	case http.StatusTooManyRequests:
	case http.StatusServiceUnavailable:
		if q.method != http.MethodGet {
			return false, 0
		}
	default:
		return false, 0
	}
	if resp.Header.Get("Retry-After") == "" || q.verb == "watch" || x.info.Attempts > c.opts.Retry.Max {
		return false, 0
	}
	after := time.Duration(retryAfter(resp.Header, time.Now())) * time.Second
	wait := c.opts.Retry.wait(after, x.info.Attempts)
	if after > c.opts.Retry.MaxWait {
		c.opts.Logger.Warn("the server asks for more time than Options.Retry.MaxWait", "request", q, "code", resp.StatusCode, "retryAfter", after, "wait", wait)
	}
	return true, wait
}

// wait returns how long to wait before an attempt is followed by another.
func (o RetryOptions) wait(retryAfter time.Duration, attempts int) time.Duration {
	least := min(max(retryAfter, time.Second), o.MaxWait)
	spread := least
	for range attempts - 1 {
		if spread >= o.MaxWait {
			break
		}
		spread *= 2
	}
	return least + rand.N(min(spread, o.MaxWait)+1)
}

// outlives returns whether the context does not end within d by its deadline.
func outlives(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= d
}

// pause waits. It returns false if the context ends before, at once if that is certain.
func pause(ctx context.Context, d time.Duration) bool {
	if !outlives(ctx, d) {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
