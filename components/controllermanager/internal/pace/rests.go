package pace

import (
	"sync"
	"time"
)

const (
	// shortWork is what needs no rest after it.
	shortWork = time.Millisecond
	// restFactor is how many times as long as the work its rest is.
	restFactor = 9
	// longestRest bounds how old what the work computes may become.
	longestRest = time.Second
)

// Rests keeps work on one key, such as a Service of 10,000 pods that change all the time,
// from taking more than a tenth of a processor: after work on a key there is a rest, in which
// changes come together for the next time. Work on keys that takes less than a millisecond
// has none. The zero value has no keys. It is safe for concurrent use.
type Rests[K comparable] struct {
	mu    sync.Mutex
	until map[K]time.Time // bounded by the keys whose last work was long
}

// Left returns how long the key still rests.
func (r *Rests[K]) Left(key K) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.until[key]
	if !ok {
		return 0
	}
	left := time.Until(until)
	if left <= 0 {
		delete(r.until, key)
	}
	return max(left, 0)
}

// Worked begins the key's rest after work that took so long.
func (r *Rests[K]) Worked(key K, took time.Duration) {
	if took < shortWork {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil {
		r.until = map[K]time.Time{}
	}
	r.until[key] = time.Now().Add(min(restFactor*took, longestRest))
}

// Forget ends the rest of a key that is gone.
func (r *Rests[K]) Forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.until, key)
}
