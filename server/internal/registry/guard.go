package registry

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// maxAttempts bounds how often a write is decided anew because another one
// came first. Each time somebody else made progress, so that only a client
// without a deadline could ever get here.
const maxAttempts = 1000

// decision is what is to become of a state.
type decision struct {
	action action
	object resource.Object // write, create: the new state; keep, remove: the last
	// admitted learns how the write ended; may be nil.
	admitted *Request
}

type action uint8

const (
	keep   action = iota // leave the object as it is
	write                // replace it
	create               // make it; the state was that it does not exist
	remove               // delete it from the store
)

// guarded decides on the current state of an object and carries the decision
// out only if that state still holds. decide may be called several times, each
// time with another state, which it may not modify. It starts with what the
// cache holds: an error or a decision not to write that came from an old state
// is decided again on the store's word, and a write is refused by the store
// itself, which answers with the state to decide on next.
func (r Registry) guarded(ctx context.Context, namespace, name string, dryRun bool, decide func(*state) (decision, error)) (*Result, error) {
	cur, err := r.read(ctx, namespace, name, false)
	if err != nil {
		return nil, err
	}
	return r.guardedFrom(ctx, cur, namespace, name, dryRun, decide)
}

// guardedFrom is guarded with the state to decide on first.
func (r Registry) guardedFrom(ctx context.Context, cur *state, namespace, name string, dryRun bool, decide func(*state) (decision, error)) (*Result, error) {
	var err error
	for range maxAttempts {
		if err != nil {
			return nil, err
		}
		d, refused := decide(cur)
		if refused != nil || d.action == keep {
			if cur.fresh {
				return r.kept(cur, d.object, refused)
			}
			latest, readErr := r.read(ctx, namespace, name, true)
			if readErr == nil && latest.revision == cur.revision {
				return r.kept(cur, d.object, refused)
			}
			cur, err = latest, readErr
			continue
		}
		result, next, carryErr := r.carryOut(ctx, namespace, name, dryRun, cur, d)
		if next == nil {
			return result, carryErr
		}
		cur, err = next, carryErr
	}
	return nil, apierrors.NewServerTimeout(r.res.GroupResource(), "update", 1)
}

// kept answers a decision that changes nothing.
func (r Registry) kept(cur *state, obj resource.Object, refused error) (*Result, error) {
	if refused != nil {
		return nil, refused
	}
	if obj == nil {
		obj = cur.object
	}
	return r.result(obj, cur.json, cur.revision)
}

// carryOut writes. It returns a next state to decide on if the one that was
// decided on no longer holds.
func (r Registry) carryOut(ctx context.Context, namespace, name string, dryRun bool, cur *state, d decision) (*Result, *state, error) {
	if d.action == remove {
		return r.carryOutRemove(ctx, namespace, name, dryRun, cur, d)
	}
	value, err := r.res.Encode(ctx, d.object)
	if err != nil {
		d.admitted.finish(ctx, Refused)
		return nil, nil, r.unencodable(name, err)
	}
	if d.action == write {
		same, err := r.stored.WithRevision(value, int64(cur.revision))
		if err == nil && bytes.Equal(same, cur.json) {
			return r.unchanged(ctx, namespace, name, cur, d)
		}
	}
	if dryRun {
		d.admitted.finish(ctx, Refused)
		result, err := r.tried(d.object, cur.revision)
		if result != nil {
			result.Created = d.action == create
		}
		return result, nil, err
	}
	var rev storage.Revision
	key := r.stored.StorePrefix + r.stored.Key(namespace, name)
	rev, value, err = r.commit(ctx, d.object, value, func(value []byte) (storage.Revision, error) {
		if d.action == create {
			return r.set.config.Store.Create(ctx, key, value, r.stored.TTL)
		}
		return r.set.config.Store.Update(ctx, key, value, cur.revision, r.stored.TTL)
	})
	d.admitted.finish(ctx, outcomeOf(err))
	if err != nil {
		next, err := r.superseded(ctx, name, err)
		return nil, next, err
	}
	r.wrote(rev)
	json, err := r.stored.WithRevision(value, int64(rev))
	if err != nil {
		return nil, nil, r.storeError(name, err)
	}
	result, err := r.result(d.object, json, rev)
	if result != nil {
		result.Created = d.action == create
	}
	return result, nil, err
}

// commit writes obj, of which value is the encoded form. An object that its
// managedFields make too large for the store is written without them: they are
// not what the client sent.
func (r Registry) commit(ctx context.Context, obj resource.Object, value []byte, write func([]byte) (storage.Revision, error)) (storage.Revision, []byte, error) {
	rev, err := write(value)
	if !errors.Is(err, storage.ErrTooLarge) || len(obj.GetManagedFields()) == 0 {
		return rev, value, err
	}
	obj.SetManagedFields(nil)
	smaller, encodeErr := r.res.Encode(ctx, obj)
	if encodeErr != nil {
		return 0, value, err
	}
	rev, err = write(smaller)
	return rev, smaller, err
}

// unchanged answers a write of what is there already. Nothing is written, but
// it must be what is there now.
func (r Registry) unchanged(ctx context.Context, namespace, name string, cur *state, d decision) (*Result, *state, error) {
	d.admitted.finish(ctx, Refused)
	if !cur.fresh {
		latest, err := r.read(ctx, namespace, name, true)
		if err != nil {
			return nil, nil, err
		}
		if latest.revision != cur.revision {
			return nil, latest, nil
		}
	}
	result, err := r.result(d.object, cur.json, cur.revision)
	return result, nil, err
}

func (r Registry) carryOutRemove(ctx context.Context, namespace, name string, dryRun bool, cur *state, d decision) (*Result, *state, error) {
	obj := d.object
	if obj == nil {
		obj = cur.object
	}
	if dryRun {
		d.admitted.finish(ctx, Refused)
		result, err := r.tried(obj, cur.revision)
		if result != nil {
			result.Deleted = true
		}
		return result, nil, err
	}
	key := r.stored.StorePrefix + r.stored.Key(namespace, name)
	rev, err := r.set.config.Store.Delete(ctx, key, cur.revision)
	d.admitted.finish(ctx, outcomeOf(err))
	if err != nil {
		next, err := r.superseded(ctx, name, err)
		return nil, next, err
	}
	r.wrote(rev)
	// The answer carries the revision of the deletion, as the event does.
	result, err := r.tried(obj, rev)
	if result != nil {
		result.Deleted = true
	}
	return result, nil, err
}

// superseded returns the state that a guarded write found instead of the one
// it expected, or the error if it failed for another reason.
func (r Registry) superseded(ctx context.Context, name string, err error) (*state, error) {
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return nil, r.storeError(name, err)
	}
	next, err := r.fromStore(ctx, conflict.Current)
	if err != nil {
		return nil, err
	}
	return next, nil
}

// unencodable is an object that decoded but cannot be written as JSON, which
// only what a client sent can be the reason for, or that could not be converted.
func (r Registry) unencodable(name string, err error) error {
	if conversion := (*resource.ConversionError)(nil); errors.As(err, &conversion) {
		return err
	}
	return badRequest("%s %s cannot be encoded: %v", r.res.GroupResource(), strconv.Quote(name), err)
}
