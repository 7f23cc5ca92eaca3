package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// expectationTimeout is when a write that was never observed is given up: the
// watch would have shown it long before, or relisted.
const expectationTimeout = 5 * time.Minute

// Expectations remember, for each key, the writes whose effects the informer
// has not shown yet. A controller that counts its objects must not count
// while some are pending: it would create what exists already. It is safe for
// concurrent use.
type Expectations struct {
	mu      sync.Mutex
	pending map[Key]map[types.UID]time.Time
	// owners finds the key of an object that has been observed.
	owners map[types.UID]Key
	// early holds objects observed before the call that created them
	// returned: the watch may be faster than the answer.
	early map[types.UID]time.Time
	now   func() time.Time
}

// NewExpectations returns an empty set.
func NewExpectations() *Expectations {
	return &Expectations{
		pending: map[Key]map[types.UID]time.Time{},
		owners:  map[types.UID]Key{},
		early:   map[types.UID]time.Time{},
		now:     time.Now,
	}
}

// ExpectCreated notes that key's controller created an object.
func (e *Expectations) ExpectCreated(key Key, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, seen := e.early[uid]; seen {
		delete(e.early, uid)
		return
	}
	e.expect(key, uid)
}

// ExpectDeleted notes that key's controller is about to delete an object. Call
// it before the deletion, and Observed if the deletion fails.
func (e *Expectations) ExpectDeleted(key Key, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expect(key, uid)
}

func (e *Expectations) expect(key Key, uid types.UID) {
	if e.pending[key] == nil {
		e.pending[key] = map[types.UID]time.Time{}
	}
	e.pending[key][uid] = e.now()
	e.owners[uid] = key
}

// Created notes that the informer has shown an object for the first time.
func (e *Expectations) Created(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.fulfil(uid) {
		e.early[uid] = e.now()
		e.forgetEarly()
	}
}

// Observed notes that the informer has shown the end, or the beginning of
// the end, of an object.
func (e *Expectations) Observed(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fulfil(uid)
	delete(e.early, uid)
}

func (e *Expectations) fulfil(uid types.UID) bool {
	key, ok := e.owners[uid]
	if !ok {
		return false
	}
	delete(e.owners, uid)
	delete(e.pending[key], uid)
	if len(e.pending[key]) == 0 {
		delete(e.pending, key)
	}
	return true
}

// earlyMost and earlyFor bound what is remembered of objects created by
// others: only those whose creating call is still under way matter.
const (
	earlyMost = 1024
	earlyFor  = time.Minute
)

func (e *Expectations) forgetEarly() {
	if len(e.early) <= earlyMost {
		return
	}
	limit := e.now().Add(-earlyFor)
	for uid, at := range e.early {
		if at.Before(limit) || len(e.early) > 2*earlyMost {
			delete(e.early, uid)
		}
	}
}

// Settled tells whether the informer has shown the effect of everything that
// key's controller did. Writes too long ago are forgotten.
func (e *Expectations) Settled(key Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.now().Add(-expectationTimeout)
	for uid, at := range e.pending[key] {
		if at.Before(limit) {
			e.fulfil(uid)
		}
	}
	return len(e.pending[key]) == 0
}

// Forget drops what is pending for a key that no longer exists.
func (e *Expectations) Forget(key Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for uid := range e.pending[key] {
		delete(e.owners, uid)
	}
	delete(e.pending, key)
}
