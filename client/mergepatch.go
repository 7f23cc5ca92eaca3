package client

import (
	"context"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/internal/mergepatch"
)

// MergePatchOptions are the options of [Resource.MergePatch].
type MergePatchOptions struct {
	// OptimisticLock has the server refuse the patch with a conflict if the
	// object is no longer at the old object's resourceVersion. It is needed when
	// a list is changed: a merge patch replaces lists as a whole.
	OptimisticLock bool
	// DryRun, FieldManager and FieldValidation are those of metav1.PatchOptions.
	DryRun          []string
	FieldManager    string
	FieldValidation string
}

// MergePatch sends what is different between two states of an object, as a JSON
// merge patch: old as it was read, and changed, usually a changed copy of it. It
// returns the object that the server has then. If nothing is different, nothing
// is sent, and changed is returned. Neither object is changed.
//
// The difference covers the object as a whole. Of kinds with a status subresource
// the server ignores the status: see [Resource.MergePatchStatus]. Package patch
// makes other kinds of patches.
func (r Resource[T]) MergePatch(ctx context.Context, old, changed T, opts MergePatchOptions) (T, error) {
	difference, err := mergepatch.Of(old, changed)
	if err != nil {
		var none T
		return none, r.refused("patch", err)
	}
	return r.sendMergePatch(ctx, old, changed, difference, "", opts)
}

// MergePatchStatus is [Resource.MergePatch] for the status: all other
// differences are left out.
func (r Resource[T]) MergePatchStatus(ctx context.Context, old, changed T, opts MergePatchOptions) (T, error) {
	difference, err := mergepatch.Of(old, changed)
	if err != nil {
		var none T
		return none, r.refused("patch", err)
	}
	return r.sendMergePatch(ctx, old, changed, statusOf(difference), "status", opts)
}

// statusOf is the part of a patch that is about the status.
func statusOf(difference map[string]any) map[string]any {
	status, ok := difference["status"]
	if !ok {
		return map[string]any{}
	}
	return map[string]any{"status": status}
}

func (r Resource[T]) sendMergePatch(ctx context.Context, old, changed T, difference map[string]any, subresource string, opts MergePatchOptions) (T, error) {
	var none T
	if len(difference) == 0 {
		return changed, nil
	}
	if opts.OptimisticLock {
		if err := mergepatch.Lock(difference, old.GetResourceVersion()); err != nil {
			return none, r.refused("patch", err)
		}
	}
	data, err := json.Marshal(difference)
	if err != nil {
		return none, r.refused("patch", err)
	}
	query := metav1.PatchOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager, FieldValidation: opts.FieldValidation}
	return r.in(old).object(ctx, call{verb: "patch", method: http.MethodPatch, name: old.GetName(), named: true,
		subresource: subresource, query: &query, raw: data, contentType: string(types.MergePatchType)})
}
