package workqueue

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// RateLimiter says how long a key must wait before it is tried again. Its
// methods are called concurrently and must not call back into the queue. A panic of
// one is logged and counted.
type RateLimiter[K comparable] interface {
	// When counts one more attempt for key and returns how long to wait.
	When(key K) time.Duration
	// Forget ends the history of key: it succeeded, or is not tried again.
	Forget(key K)
	// Requeues returns how many attempts were counted since the last Forget.
	Requeues(key K) int
}

// Defaults of [DefaultRateLimiter].
const (
	DefaultBaseDelay = 5 * time.Millisecond
	DefaultMaxDelay  = 1000 * time.Second
	DefaultRate      = 10.0 // tokens per second
	DefaultBurst     = 100
)

// DefaultRateLimiter is the slower of an exponential back-off per key
// (DefaultBaseDelay doubling up to DefaultMaxDelay) and a token bucket over
// all keys (DefaultRate per second, DefaultBurst at once).
func DefaultRateLimiter[K comparable]() RateLimiter[K] {
	return MaxOf(Exponential[K](DefaultBaseDelay, DefaultMaxDelay), Bucket[K](DefaultRate, DefaultBurst))
}

// Exponential waits base for the first attempt of a key and twice as long for
// every further one, never longer than limit. It keeps one integer per key
// until Forget. It panics unless base is above 0 and limit at least base.
func Exponential[K comparable](base, limit time.Duration) RateLimiter[K] {
	if base <= 0 || limit < base {
		panic(fmt.Sprintf("workqueue.Exponential(%v, %v): the base must be above 0, and the limit at least the base", base, limit))
	}
	return &exponential[K]{base: base, limit: limit, attempts: make(map[K]int)}
}

type exponential[K comparable] struct {
	base, limit time.Duration

	mu       sync.Mutex
	attempts map[K]int
}

func (e *exponential[K]) When(key K) time.Duration {
	e.mu.Lock()
	n := e.attempts[key]
	e.attempts[key] = n + 1
	e.mu.Unlock()
	// In floating point, because shifting overflows after 63 attempts.
	delay := float64(e.base) * math.Pow(2, float64(n))
	if delay > float64(e.limit) {
		return e.limit
	}
	return time.Duration(delay)
}

func (e *exponential[K]) Forget(key K) {
	e.mu.Lock()
	delete(e.attempts, key)
	e.mu.Unlock()
}

func (e *exponential[K]) Requeues(key K) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attempts[key]
}

// Bucket lets perSecond retries through each second over all keys together,
// burst of them at once, and makes the others wait for their token. It panics unless
// perSecond is above 0 and burst at least 1.
func Bucket[K comparable](perSecond float64, burst int) RateLimiter[K] {
	if !(perSecond > 0) || burst < 1 { // or it is not a number
		panic(fmt.Sprintf("workqueue.Bucket(%v, %d): the rate must be above 0, and the burst at least 1", perSecond, burst))
	}
	return bucket[K]{rate.NewLimiter(rate.Limit(perSecond), burst)}
}

type bucket[K comparable] struct{ limiter *rate.Limiter }

func (b bucket[K]) When(K) time.Duration { return b.limiter.Reserve().Delay() }

func (bucket[K]) Forget(K)       {}
func (bucket[K]) Requeues(K) int { return 0 }

// MaxOf asks every limiter and waits for the slowest. Requeues is the largest
// count among them.
func MaxOf[K comparable](limiters ...RateLimiter[K]) RateLimiter[K] { return maxOf[K](limiters) }

type maxOf[K comparable] []RateLimiter[K]

func (m maxOf[K]) When(key K) time.Duration {
	var longest time.Duration
	for _, l := range m {
		longest = max(longest, l.When(key))
	}
	return longest
}

func (m maxOf[K]) Forget(key K) {
	for _, l := range m {
		l.Forget(key)
	}
}

func (m maxOf[K]) Requeues(key K) int {
	most := 0
	for _, l := range m {
		most = max(most, l.Requeues(key))
	}
	return most
}
