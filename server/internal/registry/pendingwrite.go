package registry

import (
	"bytes"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// maxAttempts bounds how often a write is decided again because another write
// came first. Each time that other write made progress, so only a client
// without a deadline could reach the bound.
const maxAttempts = 1000

// pendingWrite is one write on its way to the store. It is what the stages of
// the package's comment hand on: each stage sets its own fields and reads those
// that earlier stages have set. It is used by one goroutine.
type pendingWrite struct {
	registry Registry
	verb     verb

	// What is written, and how: set by the caller, the same in all attempts.
	namespace, name string
	endpoint        Endpoint
	manager         string // the owner of the changed fields
	dryRun          bool
	// mustNotExist: an object that exists already is an error, and not a state
	// to decide on next.
	mustNotExist bool

	// current is the state that the attempt decides on. Stages must not modify
	// its object.
	current *state

	// decide: what the write does, as hooks see it and to the store. object is
	// the new state, or the one that the answer to a removal shows; for keep, nil
	// stands for the current one.
	operation Operation
	action    action
	object    resource.Object

	// admit: the write as the hooks see it.
	request Request

	// encode: the stored form of object.
	stored []byte

	// commit: where the write took effect.
	revision storage.Revision
}

// verb decides what a write does.
type verb interface {
	// decide sets operation, action and object of w from w.current. It may be
	// asked several times, each time with another current state. An error
	// refuses the write.
	decide(ctx context.Context, w *pendingWrite) error
}

// action is what a write does to the store.
type action uint8

const (
	keep    action = iota // leave the object as it is
	create                // write it; it does not exist
	replace               // write it over the current state
	mark                  // replace it by itself, marked as being deleted
	remove                // delete it from the store
)

// run takes the write through the stages, again whenever the state that it was
// decided on has been replaced meanwhile. It starts with w.current, or with what
// the cache holds if that is nil.
func (w *pendingWrite) run(ctx context.Context) (*Result, error) {
	if w.current == nil {
		var err error
		if w.current, err = w.registry.read(ctx, w.namespace, w.name, false); err != nil {
			return nil, err
		}
	}
	for range maxAttempts {
		if result, err := w.attempt(ctx); result != nil || err != nil {
			return result, err
		}
	}
	return nil, apierrors.NewServerTimeout(w.registry.res.GroupResource(), "update", 1)
}

// attempt takes the write through the stages once. If the state that it was
// decided on has been replaced, it returns nil and leaves the new state in
// w.current.
//
// A state from the cache may be old. A write that was decided on it is refused
// by the store, which compares revisions. Any other outcome (an error, nothing
// to write) counts only once the store has confirmed the state.
func (w *pendingWrite) attempt(ctx context.Context) (*Result, error) {
	w.action, w.object, w.stored = keep, nil, nil
	refused := w.verb.decide(ctx, w)
	if refused == nil {
		w.prepare(ctx)
		refused = w.admit(ctx)
	}
	if refused != nil || w.action == keep {
		if confirmed, err := w.confirm(ctx); !confirmed || err != nil {
			return nil, err
		}
		if refused != nil {
			return nil, refused
		}
		return w.unchangedResult()
	}
	if w.dryRun && w.action == create { // not encoded: a conversion webhook is not called
		w.request.finish(ctx, Refused)
		return w.dryRunResult(ctx)
	}
	if err := w.encode(ctx); err != nil {
		w.request.finish(ctx, Refused)
		return nil, err
	}
	if w.changesNothing() {
		w.request.finish(ctx, Refused)
		if confirmed, err := w.confirm(ctx); !confirmed || err != nil {
			return nil, err
		}
		return w.unchangedResult()
	}
	if w.dryRun {
		w.request.finish(ctx, Refused)
		return w.dryRunResult(ctx)
	}
	if committed, err := w.commit(ctx); !committed || err != nil {
		return nil, err
	}
	if w.action == remove {
		return w.removedResult()
	}
	return w.committedResult()
}

// confirm reports whether the store says that w.current still is the current
// state. If it is not, w.current is the one that the store holds now.
func (w *pendingWrite) confirm(ctx context.Context) (bool, error) {
	if w.current.fresh {
		return true, nil
	}
	latest, err := w.registry.read(ctx, w.namespace, w.name, true)
	if err != nil {
		return false, err
	}
	if latest.revision == w.current.revision {
		return true, nil
	}
	w.current = latest
	return false, nil
}

// changesNothing reports whether the encoded object is the current state, so
// that there is nothing to write.
func (w *pendingWrite) changesNothing() bool {
	if w.action != replace && w.action != mark {
		return false
	}
	same, err := w.registry.stored.WithRevision(w.stored, int64(w.current.revision))
	return err == nil && bytes.Equal(same, w.current.json)
}
