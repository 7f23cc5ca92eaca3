// Package pace leaves the server to others while a controller deletes very many objects.
package pace

import (
	"context"
	"time"
)

// longestPause is the longest pause after a call: what took longer has waited for something
// else than a processor.
const longestPause = 100 * time.Millisecond

// Pace lets few calls be under way at a time, and pauses after each for as long as the call
// took. So the calls take at most half of the time of as many processors, and come less often
// the busier the server is. It is safe for concurrent use.
type Pace struct{ places chan struct{} }

// New returns a Pace of so many calls at a time.
func New(calls int) *Pace { return &Pace{make(chan struct{}, calls)} }

// Do waits for a place and makes the call. It returns as soon as the call does: the pause
// is that of the place.
func (p *Pace) Do(ctx context.Context, call func() error) error {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	began := time.Now()
	defer func() {
		time.AfterFunc(min(time.Since(began), longestPause), func() { <-p.places })
	}()
	return call()
}
