package registry

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// encode makes the stored form of the object.
func (w *pendingWrite) encode(ctx context.Context) error {
	if w.action == remove {
		return nil
	}
	var err error
	if w.stored, err = w.registry.res.Encode(ctx, w.object); err != nil {
		return w.registry.unencodable(w.object.GetName(), err)
	}
	return nil
}

// commit carries the write out in the store, which compares the current state's
// revision, and reports the outcome to the hooks. If another write came first it
// returns false, and the state that the store holds now is in w.current.
func (w *pendingWrite) commit(ctx context.Context) (committed bool, err error) {
	w.revision, err = w.commitSmaller(ctx)
	if err == nil {
		w.noteWrite()
	}
	w.request.finish(ctx, outcomeOf(err))
	switch {
	case err == nil:
		return true, nil
	case w.mustNotExist && errors.Is(err, storage.ErrConflict):
		return false, w.registry.alreadyExists(w.name)
	}
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return false, w.registry.StoreError(w.name, err)
	}
	w.current, err = w.registry.fromStore(ctx, conflict.Current)
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
	smaller, encodeErr := w.registry.res.Encode(ctx, w.object)
	if encodeErr != nil {
		return 0, err
	}
	w.stored = smaller
	return w.writeStore(ctx)
}

// writeStore makes the one request to the store.
func (w *pendingWrite) writeStore(ctx context.Context) (storage.Revision, error) {
	store, stored := w.registry.set.config.Store, w.registry.stored
	key := stored.StorePrefix + stored.Key(w.namespace, w.name)
	switch w.action {
	case create:
		return store.Create(ctx, key, w.stored, stored.TTL)
	case remove:
		return store.Delete(ctx, key, w.current.revision)
	}
	return store.Update(ctx, key, w.stored, w.current.revision, stored.TTL)
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

// writeMarks are the newest revisions of this server's writes of a kind.
type writeMarks struct {
	written atomic.Int64 // of any write
	changed atomic.Int64 // of a write of an object that existed before
}

// noteWrite records the revision of the write, which the cache may not show yet.
func (w *pendingWrite) noteWrite() {
	marks := w.registry.marks()
	raise(&marks.written, w.revision)
	if w.action != create {
		raise(&marks.changed, w.revision)
	}
}

func raise(mark *atomic.Int64, revision storage.Revision) {
	for known := mark.Load(); known < int64(revision) && !mark.CompareAndSwap(known, int64(revision)); {
		known = mark.Load()
	}
}

// Changed returns the newest revision at which this server replaced or deleted an
// object of the kind. A cache of an older revision may show the object as it was
// before; a cache that does not have an object yet is no proof of its absence.
func (r Registry) Changed() storage.Revision { return storage.Revision(r.marks().changed.Load()) }

func (r Registry) marks() *writeMarks {
	if known, ok := r.set.marks.Load(r.stored.StorePrefix); ok {
		return known.(*writeMarks)
	}
	known, _ := r.set.marks.LoadOrStore(r.stored.StorePrefix, new(writeMarks))
	return known.(*writeMarks)
}
