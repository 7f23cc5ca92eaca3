package h2

import "time"

// bucket limits how often something may happen: in bursts of its size, and
// rate times a second in the long run. It is not safe for concurrent use.
type bucket struct {
	size, rate, level float64
	filled            time.Time
}

// newBucket returns the limit for frames that serve nothing. A client that
// cancels all its requests at once, several times over, must be able to.
func newBucket(streams int) bucket {
	size := float64(10*streams + 1000)
	return bucket{size: size, rate: size / 10, level: size, filled: time.Now()}
}

func (b *bucket) take() bool {
	if b.level < 1 {
		now := time.Now()
		b.level = min(b.size, b.level+now.Sub(b.filled).Seconds()*b.rate)
		b.filled = now
	}
	if b.level < 1 {
		return false
	}
	b.level--
	return true
}
