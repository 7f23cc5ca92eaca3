package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry/contention"
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
	stated          StatedOptions
	deleteOptions   *metav1.DeleteOptions // nil unless the verb is delete
	admitted        bool                  // see Request.Admitted
	// authorizeCreate is asked before an update creates an object; nil: allowed, or the verb is create.
	authorizeCreate func(context.Context) error
	// mustNotExist: an object that exists already is an error, and not a state
	// to decide on next.
	mustNotExist bool
	// refusal is an error that comes in place of the commit. A dry run, which has no
	// commit, does not see it: Kubernetes leaves this check to the store.
	refusal error
	// sentVersion is the resourceVersion of an object that is created, as the client has sent it. The
	// answer to a dry run shows it: Kubernetes leaves its removal to the store, too.
	sentVersion string

	// current is the state that the attempt decides on. Stages must not modify
	// its object.
	current *state

	// decide: what the write does, as hooks see it and to the store. object is
	// the new state, or the one that the answer to a removal shows; for keep, nil
	// stands for the current one.
	operation Operation
	action    action
	object    resource.Object

	// prepare, admit: what the answer says of owner references that were merged.
	ownersWarning string
	// sentWarnings are about the object that was sent, if the write is none, or a removal.
	sentWarnings []string

	// admit: the write as the hooks see it, the last time that they were asked, and that validation
	// takes the object.
	request Request
	valid   bool

	// encode: the stored form of object, and what clients of the endpoint will read
	// of it if conversion has changed more than the version; else nil.
	stored []byte
	shown  resource.Object

	// commit: where the write took effect.
	revision storage.Revision

	// turn is the write's place among those of the object, nil while none was overtaken.
	turn *contention.Turn
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
	defer w.endTurn()
	if w.current == nil {
		if err := w.awaitTurn(ctx, false); err != nil {
			return nil, err
		}
	}
	if w.current == nil {
		var err error
		if w.current, err = w.registry.read(ctx, w.namespace, w.name, false); err != nil {
			return nil, err
		}
	}
	for range maxAttempts {
		if result, err := w.attempt(ctx); result != nil || err != nil {
			if err == nil || w.valid { // Kubernetes warns before it asks who else may refuse
				w.warn(ctx)
			}
			return result, err
		}
		if err := w.awaitTurn(ctx, true); err != nil {
			return nil, err
		}
	}
	return nil, apierrors.NewServerTimeout(w.registry.res.GroupResource(), "update", 1)
}

// awaitTurn waits until it is this write's turn, but not for long, and then decides on the state
// that the write before it has left, if that is newer.
func (w *pendingWrite) awaitTurn(ctx context.Context, overtaken bool) error {
	if w.dryRun {
		return nil // it overtakes none, and others need not wait for it
	}
	if w.turn == nil {
		if w.turn = w.registry.set.contention.Place(w.storeKey, overtaken); w.turn == nil {
			return nil
		}
	}
	left, err := w.registry.set.contention.Await(ctx, w.turn)
	if err != nil {
		return w.registry.StoreError(w.name, err)
	}
	if left.JSON != nil && (w.current == nil || w.current.revision < left.Revision) {
		w.current, err = w.registry.decode(ctx, left.JSON, left.Revision, false)
	}
	return err
}

// endTurn lets the next write decide, on what this one has left.
func (w *pendingWrite) endTurn() {
	if w.turn == nil {
		return
	}
	var left contention.Committed
	if w.revision > 0 && w.action != remove {
		if json, err := w.registry.stored.WithRevision(w.stored, int64(w.revision)); err == nil {
			left = contention.Committed{JSON: json, Revision: w.revision}
		}
	}
	w.registry.set.contention.Leave(w.turn, left)
}

func (w *pendingWrite) storeKey() string {
	stored := w.registry.stored
	return stored.StorePrefix + stored.Key(w.namespace, w.name)
}

// attempt takes the write through the stages once. If the state that it was
// decided on has been replaced, it returns nil and leaves the new state in
// w.current.
//
// A state from the cache may be old. A write that was decided on it is refused
// by the store, which compares revisions. Any other outcome (an error, nothing
// to write, a dry run) counts only once the store has confirmed the state.
func (w *pendingWrite) attempt(ctx context.Context) (*Result, error) {
	w.action, w.object, w.stored, w.shown, w.ownersWarning, w.sentWarnings = keep, nil, nil, nil, "", nil
	w.valid = false
	refused := w.verb.decide(ctx, w)
	if refused == nil && w.object != nil {
		refused = checkRawJSON(w.object, w.current.object)
	}
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
		if confirmed, err := w.confirm(ctx); !confirmed || err != nil {
			return nil, err
		}
		return w.dryRunResult(ctx)
	}
	if w.refusal != nil {
		w.request.finish(ctx, Refused)
		return nil, w.refusal
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
// state. If it is not, or if it is stale, w.current is the one that the store holds now.
func (w *pendingWrite) confirm(ctx context.Context) (bool, error) {
	if w.current.fresh {
		return true, nil
	}
	latest, err := w.registry.read(ctx, w.namespace, w.name, true)
	if err != nil {
		return false, err
	}
	if latest.revision == w.current.revision && !latest.stale {
		return true, nil
	}
	w.current = latest
	return false, nil
}

// changesNothing reports whether the encoded object is the current state, so
// that there is nothing to write. A stale state is written again: that is how objects
// get the new key after a rotation.
func (w *pendingWrite) changesNothing() bool {
	if w.action != replace && w.action != mark || w.current.stale {
		return false
	}
	return w.registry.stored.IsCached(w.stored, int64(w.current.revision), w.current.json)
}
