package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// expectationTimeout is after what time a write that was never observed is given
// up: a watch or a list would have delivered it long before.
const expectationTimeout = 5 * time.Minute

// TypedExpectations record, for each key, the controller's own writes that the
// informer's cache does not have yet. A controller that counts its objects must
// not count while some are pending: it would create what exists already. They
// are safe for concurrent use.
type TypedExpectations[K comparable] struct {
	mu      sync.Mutex
	pending map[K]map[types.UID]pending
	// owners finds the key of an object that has been observed.
	owners map[types.UID]K
	// early holds what was observed before it was expected: the watch may be
	// faster than the answer to the call. Which objects those are is not known, as the
	// other clients' look the same, so that all are remembered, for as long as a call may
	// take; the oldest are forgotten first.
	early      map[types.UID]early
	earlyOrder []observation
	now        func() time.Time
}

// early is an object that was observed before it was expected.
type early struct {
	at   time.Time
	gone bool // its deletion was, too
}

// observation is one of an object that may have been observed again since.
type observation struct {
	uid types.UID
	at  time.Time
}

// Expectations are TypedExpectations of a Controller.
type Expectations = TypedExpectations[Key]

type pending struct {
	since time.Time
	// created is the name of an object that was created; empty for one that
	// was deleted.
	created string
}

// NewExpectations returns an empty set.
func NewExpectations() *Expectations { return NewTypedExpectations[Key]() }

// NewTypedExpectations is NewExpectations for keys of any type.
func NewTypedExpectations[K comparable]() *TypedExpectations[K] {
	return &TypedExpectations[K]{
		pending: map[K]map[types.UID]pending{},
		owners:  map[types.UID]K{},
		early:   map[types.UID]early{},
		now:     time.Now,
	}
}

// ExpectCreated notes that key's controller created an object of this name.
func (e *TypedExpectations[K]) ExpectCreated(key K, name string, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if seen, ok := e.early[uid]; ok {
		if !seen.gone { // what is gone may be expected to be deleted, too
			delete(e.early, uid)
		}
		return
	}
	e.expect(key, uid, name)
}

// ExpectDeleted notes that key's controller is about to delete an object. Call
// it before the deletion, and Observed if the deletion fails.
func (e *TypedExpectations[K]) ExpectDeleted(key K, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.early[uid].gone {
		return // nothing will show it again
	}
	e.expect(key, uid, "")
}

func (e *TypedExpectations[K]) expect(key K, uid types.UID, created string) {
	if e.pending[key] == nil {
		e.pending[key] = map[types.UID]pending{}
	}
	e.pending[key][uid] = pending{e.now(), created}
	e.owners[uid] = key
}

// Created notes that the informer has delivered an object for the first time.
func (e *TypedExpectations[K]) Created(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected, ok := e.expected(uid)
	switch {
	case ok && expected.created != "":
		e.fulfil(uid)
	case !ok && !e.early[uid].gone:
		e.noteEarly(uid, false)
	}
}

// Observed notes that the informer has delivered the deletion of an object, or
// its deletion timestamp. An object may be gone before the call that created it
// has returned.
func (e *TypedExpectations[K]) Observed(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected, ok := e.expected(uid)
	e.fulfil(uid)
	if ok && expected.created == "" { // or the deletion has failed
		delete(e.early, uid)
		return
	}
	e.noteEarly(uid, true)
}

// expected returns what is pending for an object.
func (e *TypedExpectations[K]) expected(uid types.UID) (pending, bool) {
	key, ok := e.owners[uid]
	return e.pending[key][uid], ok
}

func (e *TypedExpectations[K]) noteEarly(uid types.UID, gone bool) {
	now := e.now()
	e.early[uid] = early{now, gone}
	e.earlyOrder = append(e.earlyOrder, observation{uid, now})
	e.forgetEarly(now)
}

func (e *TypedExpectations[K]) fulfil(uid types.UID) {
	key, ok := e.owners[uid]
	if !ok {
		return
	}
	delete(e.owners, uid)
	delete(e.pending[key], uid)
	if len(e.pending[key]) == 0 {
		delete(e.pending, key)
	}
}

// earlyMost and earlyFor bound what is remembered of objects that were observed before
// they were expected: the number of observations, and their age.
const (
	earlyMost = 4096
	earlyFor  = time.Minute
)

func (e *TypedExpectations[K]) forgetEarly(now time.Time) {
	forgotten := 0
	for _, oldest := range e.earlyOrder {
		if len(e.earlyOrder)-forgotten <= earlyMost && now.Sub(oldest.at) < earlyFor {
			break
		}
		if e.early[oldest.uid].at.Equal(oldest.at) {
			delete(e.early, oldest.uid)
		}
		forgotten++
	}
	if e.earlyOrder = e.earlyOrder[forgotten:]; len(e.earlyOrder) == 0 {
		e.earlyOrder = nil // and with it the room that many took
	}
}

// Settled reports whether the informer has delivered everything that key's
// controller wrote. Call it before the objects are read: of what is read afterwards
// it is true, of what was read before it may not be. Writes older than five minutes
// are dropped.
func (e *TypedExpectations[K]) Settled(key K) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.forgetEarly(now)
	for uid, p := range e.pending[key] {
		if now.Sub(p.since) > expectationTimeout {
			e.fulfil(uid)
		}
	}
	return len(e.pending[key]) == 0
}

// askAfter is after what time the server is asked about a creation that the
// informer has not delivered.
const askAfter = 3 * time.Second

// Ask is Settled for a controller that can look on the server itself. An object
// that was created and deleted again while the watch was cut is never delivered;
// uidOf, which returns "" for a name that does not exist, finds that out. again
// is after what time to ask again if nothing else happens.
func (e *TypedExpectations[K]) Ask(ctx context.Context, key K, uidOf func(ctx context.Context, name string) (types.UID, error)) (settled bool, again time.Duration) {
	if e.Settled(key) {
		return true, 0
	}
	for uid, name := range e.overdue(key) {
		if found, err := uidOf(ctx, name); err == nil && found != uid {
			e.Observed(uid)
		}
	}
	return e.Settled(key), askAfter
}

// overdue returns the creations, uid to name, that should have been delivered.
func (e *TypedExpectations[K]) overdue(key K) map[types.UID]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.now().Add(-askAfter)
	names := map[types.UID]string{}
	for uid, p := range e.pending[key] {
		if p.created != "" && p.since.Before(limit) {
			names[uid] = p.created
		}
	}
	return names
}

// Forget drops what is pending for a key that no longer exists.
func (e *TypedExpectations[K]) Forget(key K) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for uid := range e.pending[key] {
		delete(e.owners, uid)
	}
	delete(e.pending, key)
}
