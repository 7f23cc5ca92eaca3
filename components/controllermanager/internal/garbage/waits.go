package garbage

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// waits are since when this collector has waited for what may depend on an owner. When the owner was marked says
// nothing about that: the collector may have been away, and the server's clock may be another one. The zero
// value is ready to use, and safe for concurrent use.
type waits struct {
	mu     sync.Mutex
	since  map[types.UID]time.Time // by owner
	warned time.Time
}

// begin returns since when an owner waits, which is now if it did not.
func (w *waits) begin(owner types.UID) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, ok := w.since[owner]
	if !ok {
		if w.since == nil {
			w.since = map[types.UID]time.Time{}
		}
		since = time.Now()
		w.since[owner] = since
	}
	return since
}

// end is for an owner that waits no longer, or is gone.
func (w *waits) end(owner types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, owner)
}

// overdue returns for how long an owner has waited, and how many do. It reports whether that is to be said: they may be
// many, and one of them once a minute says enough.
func (w *waits) overdue(owner types.UID) (waited time.Duration, owners int, say bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, ok := w.since[owner]
	if !ok {
		return 0, len(w.since), false
	}
	waited = time.Since(since)
	say = waited > brokenPatience && (w.warned.IsZero() || time.Since(w.warned) >= brokenPatience)
	if say {
		w.warned = time.Now()
	}
	return waited, len(w.since), say
}
