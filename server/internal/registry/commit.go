package registry

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/levelwire/levelwire/server/internal/registry/ownwrites"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// encode makes the stored form of the object.
func (w *pendingWrite) encode(ctx context.Context) error {
	if w.action == remove {
		return nil
	}
	switch {
	case w.action == create || w.action == replace && w.endpoint.Scope == ScopeMain: // else it may share memory
		call(w.registry.res.Strategy.CompleteStored, w.object)
	case w.endpoint.Scope == ScopeStatus:
		call(w.registry.res.Strategy.CompleteStatus, w.object)
	}
	var err error
	if w.stored, err = w.registry.res.Encode(ctx, w.object); err != nil {
		return w.registry.unencodable(w.object.GetName(), err)
	}
	return w.convertBack(ctx)
}

// convertBack makes what the answer shows of a custom resource in another version
// than the stored one, or of a kind that is completed when it is stored: what a client
// reads next, which may be less or more than what was sent. That happens before the commit, so that a conversion that fails refuses the
// write.
func (w *pendingWrite) convertBack(ctx context.Context) error {
	res := w.registry.res
	if !res.StorageCompletes && (!res.Stored().Mixed || bytes.HasPrefix(w.stored, res.Prefix())) {
		return nil
	}
	var err error
	if w.shown, err = res.Decode(ctx, w.stored); err != nil {
		return w.registry.StoreError(w.name, err)
	}
	return nil
}

// commit carries the write out in the store, which compares the current state's
// revision, and reports the outcome to the hooks. If another write came first it
// returns false, and the state that the store holds now is in w.current.
func (w *pendingWrite) commit(ctx context.Context) (committed bool, err error) {
	bounded := ctx
	if by := w.request.commitBy; !by.IsZero() {
		var cancel context.CancelFunc
		bounded, cancel = context.WithDeadline(ctx, by)
		defer cancel()
	}
	w.revision, err = w.commitSmaller(bounded)
	if err == nil {
		w.noteWrite()
	}
	w.request.finish(ctx, outcomeOf(err))
	if err == nil {
		return true, nil
	}
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return false, w.registry.StoreError(w.name, err)
	}
	existing, err := w.registry.fromStore(ctx, conflict.Current)
	if w.mustNotExist {
		if err != nil {
			existing = missing // whether it can be read is not what was asked
		}
		return false, w.registry.alreadyExists(w.object, existing.object)
	}
	w.current = existing
	return false, err
}

// commitSmaller writes the object. An object that its managedFields make too
// large for the store is written without them: the client has not sent them.
func (w *pendingWrite) commitSmaller(ctx context.Context) (storage.Revision, error) {
	rev, err := w.writeStore(ctx)
	if !errors.Is(err, storage.ErrTooLarge) || w.action == remove || len(w.object.GetManagedFields()) == 0 {
		return rev, err
	}
	w.object.SetManagedFields(nil)
	if w.shown != nil {
		w.shown.SetManagedFields(nil)
	}
	smaller, encodeErr := w.registry.res.Encode(ctx, w.object)
	if encodeErr != nil {
		return 0, err
	}
	w.stored = smaller
	return w.writeStore(ctx)
}

// writeStore makes the one request to the store, and has the hook of the kind know of it.
func (w *pendingWrite) writeStore(ctx context.Context) (revision storage.Revision, err error) {
	hook := w.registry.set.storeHooks[w.registry.stored.StorePrefix]
	if hook == nil || w.action == remove {
		return w.askStore(ctx)
	}
	if answered := hook(ctx, w.namespace, w.name, w.stored); answered != nil {
		outcome := Unknown // if the store panics
		defer func() { answered(outcome) }()
		revision, err = w.askStore(ctx)
		outcome = outcomeOf(err)
		return revision, err
	}
	return w.askStore(ctx)
}

func (w *pendingWrite) askStore(ctx context.Context) (storage.Revision, error) {
	store, ttl, key := w.registry.set.config.Store, w.registry.stored.TTL, w.storeKey()
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	switch w.action {
	case create:
		return store.Create(ctx, key, w.stored, ttl)
	case remove:
		return store.Delete(ctx, key, w.current.revision)
	}
	return store.Update(ctx, key, w.stored, w.current.revision, ttl)
}

// outcomeOf returns the outcome of a write that the store has answered with err.
func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Committed
	case errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrTooLarge):
		return Refused
	}
	return Unknown
}

// unencodable is the error for an object that was decoded and cannot be written
// as JSON, which only the client's body can be the reason for, or that could
// not be converted.
func (r Registry) unencodable(name string, err error) error {
	if conversion := (*resource.ConversionError)(nil); errors.As(err, &conversion) {
		return err
	}
	return status.BadRequest("%s %s cannot be encoded: %v", r.res.GroupResource(), strconv.Quote(name), err)
}

// noteWrite records the revision of the write, which the cache may not show yet.
func (w *pendingWrite) noteWrite() { w.registry.marks().Note(w.revision, w.action != create) }

// Changed returns the newest revision at which this server replaced or deleted an
// object of the kind. A cache of an older revision may show the object as it was
// before; a cache that does not have an object yet is no proof of its absence.
func (r Registry) Changed() storage.Revision { return r.marks().Changed() }

// OwnWrites compares the cache of the kind, which must have one, with the writes that this
// server has acknowledged.
func (r Registry) OwnWrites() ownwrites.Comparison {
	return ownwrites.Comparison{Marks: r.marks(), Cache: r.Cache()}
}

// Forget drops what the Set keeps about a stored resource that is not served any
// more. A cache of a later definition is filled after all writes before.
func (s *Set) Forget(stored *resource.Resource) { s.marks.Delete(stored.StorePrefix) }

func (r Registry) marks() *ownwrites.Marks {
	if known, ok := r.set.marks.Load(r.stored.StorePrefix); ok {
		return known.(*ownwrites.Marks)
	}
	known, _ := r.set.marks.LoadOrStore(r.stored.StorePrefix, new(ownwrites.Marks))
	return known.(*ownwrites.Marks)
}
