package informer

import (
	"log/slog"
	"sync"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// maxFailures is how many objects have a count of their own in failures; the others share one.
const maxFailures = 64

// failures keeps the log readable while functions of the program fail for objects again and
// again: of one object, the first is logged, the tenth, the hundredth and so on. It is
// safe for concurrent use.
type failures struct {
	mu     sync.Mutex
	count  map[failure]int64
	others map[string]int64 // of objects without a count of their own, by what fails
}

// failure is what fails for which object.
type failure struct{ what, key string }

// warn logs that what has failed for an object, or only counts it.
func (f *failures) warn(log *slog.Logger, what, key string, err error) {
	n, others := f.add(what, key)
	if !contain.IsPowerOfTen(n) {
		return
	}
	attributes := []any{"key", key, "failures", n, "error", err}
	if others {
		attributes = append(attributes, "of", "many objects")
	}
	log.Warn(what, attributes...)
}

// add counts a failure, and returns the count of the object, or of all others.
func (f *failures) add(what, key string) (n int64, others bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count, f.others = map[failure]int64{}, map[string]int64{}
	}
	of := failure{what, key}
	if _, known := f.count[of]; !known && len(f.count) >= maxFailures {
		f.others[what]++
		return f.others[what], true
	}
	f.count[of]++
	return f.count[of], false
}

// forget is called when an object is gone: another may have its name later.
func (f *failures) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for of := range f.count {
		if of.key == key {
			delete(f.count, of)
		}
	}
}
