package garbage

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// waits are the owners of which it is not known yet what depends on them. The zero value is ready to use, and safe for
// concurrent use.
type waits struct {
	mu     sync.Mutex
	owners map[types.UID]*wait
	warned time.Time
}

// wait is how far an owner is.
type wait struct {
	// since is when this collector began to wait. When the owner was marked says nothing about that: the collector may
	// have been away, and the server's clock may be another one.
	since time.Time
	// cut says that the owner's dependents were let go once, and version where the server's storage was after that, which
	// is where the graph has to come to. It stands still while the owner waits: a watch that is always a few
	// seconds late would never come to a version that is asked for anew each time.
	cut     bool
	version string
	// defined is when the last definition had changed when the graph had come to the version; nil: it has not yet.
	defined *time.Time
}

// begin returns since when an owner waits, which is now if it did not.
func (w *waits) begin(owner types.UID) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of(owner).since
}

// of needs mu.
func (w *waits) of(owner types.UID) *wait {
	one, ok := w.owners[owner]
	if !ok {
		if w.owners == nil {
			w.owners = map[types.UID]*wait{}
		}
		one = &wait{since: time.Now()}
		w.owners[owner] = one
	}
	return one
}

// isCut returns whether an owner's dependents were let go once, and the version after that.
func (w *waits) isCut(owner types.UID) (version string, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.of(owner)
	return one.version, one.cut
}

// cutAt notes that an owner's dependents were let go, and a version after that.
func (w *waits) cutAt(owner types.UID, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.of(owner)
	one.cut, one.version, one.defined = true, version, nil
}

// definedFor returns when the last definition had changed that an owner waits for, if that is known.
func (w *waits) definedFor(owner types.UID) (at time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.of(owner); one.defined != nil {
		return *one.defined, true
	}
	return time.Time{}, false
}

// defineFor notes that.
func (w *waits) defineFor(owner types.UID, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(owner).defined = &at
}

// startOver has an owner looked at as if its dependents had not been let go yet.
func (w *waits) startOver(owner types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one, ok := w.owners[owner]; ok {
		one.cut, one.version, one.defined = false, "", nil
	}
}

// end is for an owner that waits no longer, or is gone.
func (w *waits) end(owner types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.owners, owner)
}

// overdue returns for how long an owner has waited, and how many do. It reports whether that is to be said: they may be
// many, and one of them once a minute says enough.
func (w *waits) overdue(owner types.UID) (waited time.Duration, owners int, say bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, ok := w.owners[owner]
	if !ok {
		return 0, len(w.owners), false
	}
	waited = time.Since(one.since)
	say = waited > brokenPatience && (w.warned.IsZero() || time.Since(w.warned) >= brokenPatience)
	if say {
		w.warned = time.Now()
	}
	return waited, len(w.owners), say
}
