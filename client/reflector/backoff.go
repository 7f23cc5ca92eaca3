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
	switch {
	case b.limit == 0 || now.Sub(b.last) >= b.Reset:
		b.limit = min(b.Base, b.Max)
	default:
		b.limit = min(2*b.limit, b.Max)
	}
	delay := time.Duration(b.rand() * float64(b.limit))
	b.last = now.Add(delay)
	return delay
}
