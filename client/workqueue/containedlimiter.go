package workqueue

import (
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// maxFallbackDelay is the longest that a key waits whose rate limiter panics again and again.
const maxFallbackDelay = 30 * time.Second

// containedLimiter is the program's RateLimiter. If it panics, which would end the process or leave a
// key that has failed untried, the key has an exponential back-off instead.
type containedLimiter[K comparable] struct {
	limiter  RateLimiter[K]
	fallback RateLimiter[K] // counts the attempts for which limiter has panicked
	log      *slog.Logger
	panics   contain.Counter
}

func containLimiter[K comparable](limiter RateLimiter[K], log *slog.Logger) *containedLimiter[K] {
	return &containedLimiter[K]{limiter: limiter, fallback: Exponential[K](DefaultBaseDelay, maxFallbackDelay), log: log}
}

func (c *containedLimiter[K]) When(key K) (delay time.Duration) {
	returned := false
	c.panics.Call(c.log, "RateLimiter.When", func() {
		delay = c.limiter.When(key)
		returned = true
	})
	if !returned {
		return c.fallback.When(key)
	}
	return delay
}

func (c *containedLimiter[K]) Forget(key K) {
	c.panics.Call(c.log, "RateLimiter.Forget", func() { c.limiter.Forget(key) })
	c.fallback.Forget(key)
}

func (c *containedLimiter[K]) Requeues(key K) (attempts int) {
	c.panics.Call(c.log, "RateLimiter.Requeues", func() { attempts = c.limiter.Requeues(key) })
	return attempts + c.fallback.Requeues(key)
}
