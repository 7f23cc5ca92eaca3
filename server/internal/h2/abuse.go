package h2

import (
	"time"

	"golang.org/x/net/http2"
)

// countAbusiveFrame counts a frame that costs the client nothing and transports
// nothing, or makes the server work for nothing: SETTINGS, resets, empty DATA,
// unknown types. Too many of them end the connection.
func (c *conn) countAbusiveFrame() error {
	if !c.abuse.take() {
		return connError{http2.ErrCodeEnhanceYourCalm, "too many frames that serve nothing"}
	}
	return nil
}

// tokenBucket limits how often something may happen: size times in a burst, and
// rate times a second in the long run. It is not safe for concurrent use.
type tokenBucket struct {
	size, rate, level float64
	filled            time.Time
}

// newAbuseLimit returns the limit for frames of countAbusiveFrame. A client may
// cancel all its requests at once, several times over.
func newAbuseLimit(streams int) tokenBucket {
	size := float64(10*streams + 1000)
	return tokenBucket{size: size, rate: size / 10, level: size, filled: time.Now()}
}

// take takes a token, and reports whether there was one.
func (b *tokenBucket) take() bool {
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
