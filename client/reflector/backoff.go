package reflector

import "time"

// backoff draws the delays that Backoff describes.
type backoff struct {
	Backoff
	rand  func() float64
	limit time.Duration
	last  time.Time // when the last delay was over
}

// next is how long to wait after a failure at now.
func (b *backoff) next(now time.Time) time.Duration {
	if b.limit == 0 || now.Sub(b.last) >= b.Reset {
		return b.wait(now, b.Base)
	}
	return b.wait(now, max(b.Base, 2*b.limit))
}

// restart has the limit begin at Base again.
func (b *backoff) restart() { b.limit = 0 }

// steady is how long a stream must last for its cut, or its early end, to be no
// failure in a row with those before it: proxies that cut idle connections do so after a minute.
const steady = 30 * time.Second

// afterCut is how long to wait at now after a stream that had lasted for a while
// was cut, or ended early. It is shorter than after other failures, because the server was there a
// moment ago, and long enough to spread the clients of a server that has died.
func (b *backoff) afterCut(now time.Time, lasted time.Duration) time.Duration {
	if b.limit == 0 || lasted >= steady || now.Sub(b.last) >= b.Reset {
		return b.wait(now, b.first())
	}
	return b.wait(now, max(b.first(), 2*b.limit))
}

// first is the limit after one cut.
func (b *backoff) first() time.Duration { return b.Base / 4 }

// spread is how long to wait before opening a steady watch again that the server
// has ended early: it stops, perhaps, and so ends those of all its clients.
func (b *backoff) spread() time.Duration { return time.Duration(b.rand() * float64(b.first())) }

// wait draws from a limit.
func (b *backoff) wait(now time.Time, limit time.Duration) time.Duration {
	b.limit = min(limit, b.Max)
	delay := time.Duration(b.rand() * float64(b.limit))
	b.last = now.Add(delay)
	return delay
}
