package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// patch answers PATCH of an object.
func (h *Handlers) patch(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	x, patch, err := h.newPatcher(w, r, q)
	if err != nil {
		return err
	}
	result, err := x.registry.Patch(r.Context(), q.Namespace, q.Name, patch, x.patchOptions())
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, result)
}

// newPatcher reads options, body and patch.
func (h *Handlers) newPatcher(w http.ResponseWriter, r *http.Request, q *request.Info) (*writer, *patch.Patch, error) {
	kind := patchType(r)
	if q.Resource.Stored().Mixed {
		if err := patch.CheckCustom(kind); err != nil {
			return nil, nil, err
		}
	}
	x, err := h.newWriter(w, r, q, func(o metav1.UpdateOptions) (string, field.ErrorList) {
		return "PatchOptions", validation.ValidatePatchOptions(&metav1.PatchOptions{
			DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation, Force: force(q),
		}, kind)
	})
	if err != nil {
		return nil, nil, err
	}
	patch, err := patch.Parse(kind, x.body)
	if err != nil {
		return nil, nil, err
	}
	return x, patch, x.judge(patch.StrictErrors())
}

// patchType returns the patch type in the Content-Type, known or not.
func patchType(r *http.Request) types.PatchType {
	kind, err := encoding.BodyMediaType(r)
	if err != nil {
		return types.PatchType(r.Header.Get("Content-Type"))
	}
	return types.PatchType(kind)
}

// force reads the query parameter force, which only server-side apply may have.
func force(q *request.Info) *bool {
	if !q.Query.Has("force") {
		return nil
	}
	forced := request.IsTrue(q.Query, "force")
	return &forced
}

// patchOptions decodes a patched object as strictly as a body. Its warnings are
// added once, however often the patch is applied.
func (x *writer) patchOptions() registry.PatchOptions {
	warned := false
	forced := force(x.q)
	return registry.PatchOptions{WriteOptions: x.opts, Force: forced != nil && *forced, Decode: func(patched []byte) (resource.Object, error) {
		obj, gvk, strict, err := x.q.Resource.DecodeBodyInPlace(resource.MediaTypeJSON, patched)
		if err != nil {
			return nil, x.bodyError(err, gvk, patched, true)
		}
		if warned && x.validation != validationStrict {
			return obj, nil
		}
		warned = true
		return obj, x.judge(strict)
	}}
}
