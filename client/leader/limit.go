package leader

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/client/internal/ratelimit"
)

// attempt returns the context of one attempt to read and write the Lease. Without a limit
// of its own, one request whose answer never comes would use up the time in which another
// one may succeed. Nor does it wait for its turn among the other requests of the client.
func (e *Elector) attempt(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ratelimit.Exempt(ctx), limit, fmt.Errorf("there was no answer within %v", limit))
}

// leaderLimit is how long a renewal may take: half of RenewDeadline, as in client-go, and
// never so long that no time is left for another one.
func (e *Elector) leaderLimit() time.Duration {
	least := e.opts.RenewDeadline / 20
	return max(least, min(e.opts.RenewDeadline/2, e.remaining()-least))
}

// candidateLimit is how long an attempt of a candidate may take: so long that it does not
// miss the moment at which the Lease runs out, or RetryPeriod, which is the pause between
// attempts. late is how many attempts before it were too slow: a server that is slow but
// answers gets more time.
func (e *Elector) candidateLimit(late int) time.Duration {
	limit := max(e.opts.RetryPeriod, min(e.opts.RenewDeadline/2, e.left()))
	for ; late > 0 && limit < e.opts.RenewDeadline; late-- {
		limit *= 2
	}
	return min(limit, e.opts.RenewDeadline)
}

// leaveConnection is called after an attempt that was too slow: its connection may be dead, and
// over HTTP/2 the next one would hang on it, too, until the client finds that out, which takes
// longer than a leader has.
func (e *Elector) leaveConnection() {
	if e.reconnect != nil {
		e.reconnect()
	}
}
