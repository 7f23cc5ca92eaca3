package client

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/internal/deepequal"
	"github.com/levelwire/levelwire/client/internal/mergepatch"
)

// OperationResult says what [Resource.CreateOrUpdate] or [Resource.CreateOrPatch]
// did.
type OperationResult string

// What was done. The last two are CreateOrPatch's only.
const (
	OperationResultNone              OperationResult = "unchanged"
	OperationResultCreated           OperationResult = "created"
	OperationResultUpdated           OperationResult = "updated"
	OperationResultUpdatedStatus     OperationResult = "updatedStatus"     // and the rest of the object
	OperationResultUpdatedStatusOnly OperationResult = "updatedStatusOnly" // the rest was as it should be
)

// CreateOrUpdate sees to it that an object exists and is as mutate wants it. The
// name and the namespace are those of obj. If there is no such object, mutate is
// called with a copy of obj, which is then created; else with the object that
// there is, which is then updated if mutate has changed it. It returns the
// object as the server has it, and what was done.
//
// When another write comes between, CreateOrUpdate begins again, as
// [Resource.UpdateWithRetry] does. So mutate may be called several times, each
// time with an object of its own. It must set fields, and not replace the object:
// fields that the server has defaulted would differ each time. It must not change
// the status, which the server ignores.
func (r Resource[T]) CreateOrUpdate(ctx context.Context, obj T, mutate func(obj T) error) (T, OperationResult, error) {
	return r.createOr(ctx, obj, mutate, func(existing, wanted T) (T, OperationResult, error) {
		if deepequal.Semantic(existing, wanted) {
			return existing, OperationResultNone, nil
		}
		written, err := r.Update(ctx, wanted, metav1.UpdateOptions{})
		return written, OperationResultUpdated, err
	})
}

// CreateOrPatch is [Resource.CreateOrUpdate] that sends only what mutate changed,
// as merge patches: one for the object and one for its status, as far as they
// are changed. The patches are not guarded by the resourceVersion. Of an object
// that it creates, a server with a status subresource ignores the status.
func (r Resource[T]) CreateOrPatch(ctx context.Context, obj T, mutate func(obj T) error) (T, OperationResult, error) {
	return r.createOr(ctx, obj, mutate, func(existing, wanted T) (T, OperationResult, error) {
		return r.patchBoth(ctx, existing, wanted)
	})
}

// createOr creates obj as mutate wants it, or calls change with the object that
// exists, before and after mutate.
func (r Resource[T]) createOr(ctx context.Context, obj T, mutate func(T) error,
	change func(existing, wanted T) (T, OperationResult, error)) (T, OperationResult, error) {
	var none T
	if mutate == nil {
		return none, OperationResultNone, r.refused("create or update", errors.New("mutate is nil"))
	}
	for attempt := 1; ; attempt++ {
		existing, err := r.in(obj).Get(ctx, obj.GetName(), metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return none, OperationResultNone, err
		}
		if missing {
			existing = obj
		}
		wanted, err := changedCopy(existing, mutate)
		if err != nil {
			return none, OperationResultNone, err
		}
		var result OperationResult
		var written T
		if missing {
			result = OperationResultCreated
			written, err = r.Create(ctx, wanted, metav1.CreateOptions{})
		} else {
			written, result, err = change(existing, wanted)
		}
		// NotFound: of a deletion since the read, or of the namespace, which is
		// final.
		raced := apierrors.IsConflict(err) || missing && apierrors.IsAlreadyExists(err) || !missing && apierrors.IsNotFound(err)
		if err == nil {
			return written, result, nil
		}
		if !raced {
			return none, OperationResultNone, err
		}
		if err := r.awaitConflictRetry(ctx, attempt, err); err != nil {
			return none, OperationResultNone, err
		}
	}
}

// patchBoth sends what is different between existing and wanted: the object with
// its status, which suffices for a kind without a status subresource, and then
// the status if the server has ignored it.
func (r Resource[T]) patchBoth(ctx context.Context, existing, wanted T) (T, OperationResult, error) {
	difference, err := mergepatch.Of(existing, wanted)
	if err != nil {
		return existing, OperationResultNone, r.refused("patch", err)
	}
	status := statusOf(difference)
	if len(difference) == 0 {
		return existing, OperationResultNone, nil
	}
	if len(difference) == len(status) {
		written, err := r.sendMergePatch(ctx, existing, wanted, status, "status", MergePatchOptions{})
		if apierrors.IsNotFound(err) { // the object, or the kind has no status subresource
			written, err = r.sendMergePatch(ctx, existing, wanted, difference, "", MergePatchOptions{})
		}
		return written, OperationResultUpdatedStatusOnly, err
	}
	written, err := r.sendMergePatch(ctx, existing, wanted, difference, "", MergePatchOptions{})
	if err != nil || len(status) == 0 {
		return written, OperationResultUpdated, err
	}
	left, err := mergepatch.Of(written, wanted)
	if err == nil && len(statusOf(left)) > 0 {
		written, err = r.sendMergePatch(ctx, existing, wanted, status, "status", MergePatchOptions{})
	}
	return written, OperationResultUpdatedStatus, err
}
