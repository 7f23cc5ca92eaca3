package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// patch answers PATCH of an object.
func (h *Handlers) patch(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	x, patch, err := h.newPatcher(w, r, q)
	if err != nil {
		return err
	}
	result, err := x.registry.Patch(r.Context(), q.Namespace, q.Name, patch, x.patchOptions(patch))
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, result)
}

// newPatcher is the beginning of a PATCH: kind of the patch, form of the answer, size, options, patch.
func (h *Handlers) newPatcher(w http.ResponseWriter, r *http.Request, q *request.Info) (*writer, *patch.Patch, error) {
	kind := patchType(r)
	if err := patch.CheckKind(kind, q.Resource.Stored().Mixed); err != nil {
		return nil, nil, err
	}
	x, err := h.newWriter(w, r, q)
	if err != nil {
		return nil, nil, err
	}
	if err := x.readBody(h.config.MaxBodyBytes); err != nil {
		return nil, nil, err
	}
	if err := x.readPatchOptions(kind); err != nil {
		return nil, nil, err
	}
	patch, err := patch.Parse(kind, x.body)
	return x, patch, err
}

func (x *writer) readPatchOptions(kind types.PatchType) error {
	return x.readOptions(func(o metav1.UpdateOptions) (string, field.ErrorList) {
		return "PatchOptions", validation.ValidatePatchOptions(&metav1.PatchOptions{
			DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation, Force: force(x.q),
		}, kind)
	})
}

// judgeApplied is judge for what is applied.
func (x *writer) judgeApplied(strict []error) error {
	if len(strict) > 0 && x.validation == validationStrict {
		return status.BadRequest("error strict decoding patch: %v", errors.Join(strict...))
	}
	x.refuses(strict) // warns
	return nil
}

// patchType returns the patch type in the Content-Type, known or not.
func patchType(r *http.Request) types.PatchType {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
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
func (x *writer) patchOptions(p *patch.Patch) registry.PatchOptions {
	warned := false
	forced := force(x.q)
	said := func() bool {
		before := warned && x.validation != validationStrict
		warned = true
		return before
	}
	merged := func() error {
		if said() {
			return nil
		}
		return x.judgeApplied(p.StrictErrors())
	}
	return registry.PatchOptions{WriteOptions: x.opts, Force: forced != nil && *forced, Merged: merged, Decode: func(patched []byte) (resource.Object, error) {
		obj, gvk, strict, err := x.q.Resource.DecodeBodyInPlace(resource.MediaTypeJSON, patched)
		lost := !x.q.Resource.Stored().Mixed && losesVersion(p, patched)
		if err != nil && !lost {
			return nil, x.patchedError(p, err, gvk, patched)
		}
		if lost {
			return nil, x.withoutVersion(p, gvk, patched)
		}
		if said() {
			return obj, nil
		}
		return obj, x.judgePatched(p, patched, strict)
	}}
}

// losesVersion reports whether a JSON patch or a JSON merge patch takes the apiVersion away.
// Of a built-in kind kube-apiserver then reads an object of no version, which has no name either.
func losesVersion(p *patch.Patch, patched []byte) bool {
	if p.IsStrategic() || !p.MayChange("apiVersion") {
		return false
	}
	var left metav1.TypeMeta
	return kjson.UnmarshalCaseSensitivePreserveInts(patched, &left) == nil && left.APIVersion == ""
}

// withoutVersion is the error for a patch that takes the apiVersion away.
func (x *writer) withoutVersion(p *patch.Patch, got schema.GroupVersionKind, patched []byte) error {
	if want := x.q.Resource.GroupVersionKind(); got.Kind != want.Kind {
		return invalidPatch(p, patched, fmt.Sprintf("no kind %q is registered for the internal version of group %q in scheme \"pkg/runtime/scheme.go:111\"", got.Kind, internalGroup(want.Group)))
	}
	return status.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", x.q.Name)
}

// judgePatched is judge for a patched object.
func (x *writer) judgePatched(p *patch.Patch, patched []byte, strict []error) error {
	if why := x.refuses(slices.Concat(p.StrictErrors(), strict)); why != "" {
		return invalidPatch(p, patched, why)
	}
	return nil
}

// patchedError is the error for a patch that makes of the object what is none of its kind.
func (x *writer) patchedError(p *patch.Patch, err error, got schema.GroupVersionKind, patched []byte) error {
	var kind *resource.KindMismatchError
	if errors.As(err, &kind) {
		got = kind.Got
	}
	want := x.q.Resource.GroupVersionKind()
	switch {
	case !x.q.Resource.Stored().Mixed && !got.Empty() && got != want:
		err = x.patchedKind(got, want) // whatever else is wrong with it
	case p.IsStrategic():
		err = strategicWords(err, patched, x.q.Resource.New())
	case p.IsMerge():
		patched, err = x.firstByName(err, patched)
	}
	return invalidPatch(p, patched, err.Error())
}

// firstByName returns a document with its members in the order of their names, and what is wrong with it first then,
// which is how Kubernetes has what it makes of a merge patch.
func (x *writer) firstByName(err error, patched []byte) ([]byte, error) {
	fields := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(patched))
	decoder.UseNumber()
	if decoder.Decode(&fields) != nil {
		return patched, err
	}
	sorted, failed := json.Marshal(fields)
	if failed != nil {
		return patched, err
	}
	if _, _, _, first := x.q.Resource.DecodeBody(resource.MediaTypeJSON, sorted); first != nil {
		return sorted, first
	}
	return patched, err
}

// strategicWords returns why a patched document cannot be decoded into an object, as
// Kubernetes says it of a strategic merge patch, or else err.
func strategicWords(err error, patched []byte, into runtime.Object) error {
	fields := map[string]any{}
	if kjson.UnmarshalCaseSensitivePreserveInts(patched, &fields) == nil {
		if words := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into); words != nil {
			return words
		}
	}
	return err
}

// invalidPatch is Kubernetes' refusal of what a patch makes of an object.
func invalidPatch(p *patch.Patch, patched []byte, why string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), p.Quoted(patched), why)})
}
