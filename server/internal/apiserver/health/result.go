package health

import (
	"context"
	"time"
)

// resultAge is how old the result of a shared check may be: health needs no
// credentials.
const resultAge = time.Second

// result is the last result of a shared check. It is safe for concurrent use.
type result struct {
	check Check
	turn  chan struct{} // has one element, which the goroutine holds that uses the fields below
	at    time.Time     // zero: never
	err   error
}

func newResult(check Check) *result {
	r := &result{check: check, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// get returns the last result, or a new one if that is too old. Requests that come
// while the check runs wait for it, until ctx ends.
func (r *result) get(ctx context.Context) error {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.turn <- struct{}{} }()
	if !r.at.IsZero() && time.Since(r.at) < resultAge {
		return r.err
	}
	// The result is for others, too: a client that leaves must not spoil it.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	r.err = r.check.Check(own)
	r.at = time.Now()
	return r.err
}
