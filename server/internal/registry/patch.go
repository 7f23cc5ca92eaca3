package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Bounds of a JSON patch, which can make much out of little.
const (
	maxPatchOperations = 10_000
	maxPatchedBytes    = 3 << 20
)

// The library knows this bound only as a variable of its own.
func init() { jsonpatch.AccumulatedCopySizeLimit = maxPatchedBytes }

// Patch is a parsed patch: something that turns one JSON document into
// another, or (server-side apply) what a manager wants of an object. It is
// immutable.
type Patch struct {
	kind types.PatchType
	body []byte
	ops  jsonpatch.Patch

	shape jsonShape

	// Of server-side apply: what is wanted, and the fields that the body names twice.
	wanted *unstructured.Unstructured
	strict []error
}

// ParsePatch checks what can be checked of a patch without knowing what it is
// applied to.
func ParsePatch(kind types.PatchType, body []byte) (*Patch, error) {
	p := &Patch{kind: kind, body: body}
	switch kind {
	case types.JSONPatchType:
		if err := p.parseOperations(); err != nil {
			return nil, err
		}
		return p, p.checkDepth()
	case types.MergePatchType, types.StrategicMergePatchType:
		var doc map[string]json.RawMessage
		if err := json.Unmarshal(body, &doc); err != nil {
			return nil, badRequest("the patch must be a JSON object: %v", err)
		}
		if doc == nil {
			return nil, badRequest("the patch must be a JSON object, and is null")
		}
		return p, p.checkDepth()
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		return p, p.parseApply()
	}
	return nil, unsupportedMediaType(fmt.Sprintf(
		"the body of the request was in an unknown format - accepted media types include: %s, %s, %s, %s, %s",
		types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType, types.ApplyCBORPatchType))
}

// StrictErrors are the fields that the body of a server-side apply names twice.
// What other patches say twice shows in what they make of the object.
func (p *Patch) StrictErrors() []error { return p.strict }

func (p *Patch) parseOperations() error {
	var err error
	if p.ops, err = jsonpatch.DecodePatch(p.body); err != nil {
		return badRequest("the JSON patch cannot be decoded: %v", err)
	}
	if n := len(p.ops); n > maxPatchOperations {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, n))
	}
	for i, op := range p.ops {
		if op == nil {
			return badRequest("operation %d of the JSON patch is null", i)
		}
		if err := checkOperation(op); err != nil {
			return badRequest("operation %d of the JSON patch: %v", i, err)
		}
	}
	return nil
}

// checkOperation wants the members that an operation must have.
func checkOperation(op jsonpatch.Operation) error {
	if _, err := op.Path(); err != nil {
		return errors.New("path is missing or not a string")
	}
	switch kind := op.Kind(); kind {
	case "remove":
	case "move", "copy":
		if _, err := op.From(); err != nil {
			return errors.New("from is missing or not a string")
		}
	case "add", "replace", "test":
		if _, ok := op["value"]; !ok {
			return errors.New("value is missing")
		}
	default:
		return fmt.Errorf("op %q is unknown", kind)
	}
	return nil
}

// Apply returns the patched document. doc is not changed. like is an object of
// the Go type that says how a strategic merge treats lists.
func (p *Patch) Apply(doc []byte, like any) (out []byte, err error) {
	defer func() {
		// The patch libraries index what clients sent; a panic in them is the
		// patch's fault and nothing has been written.
		if cause := recover(); cause != nil {
			out, err = nil, badRequest("the patch cannot be applied: %v", cause)
		}
	}()
	switch p.kind {
	case types.JSONPatchType:
		out, err = p.ops.Apply(doc)
		err = operationError(err)
	case types.MergePatchType:
		if out, err = jsonpatch.MergePatch(doc, p.body); err != nil {
			err = badRequest("the merge patch cannot be applied: %v", err)
		}
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		return nil, badRequest("what is applied is merged into an object, not into a document")
	default:
		if _, custom := like.(*unstructured.Unstructured); custom {
			return nil, unsupportedMediaType("strategic merge patch is not supported for custom resources: send " + string(types.MergePatchType))
		}
		if err := p.checkElements(doc); err != nil {
			return nil, err
		}
		out, err = strategicpatch.StrategicMergePatch(doc, p.body, like)
		err = strategicError(err)
	}
	if err == nil && len(out) > maxPatchedBytes {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the patched object has %d bytes, the limit is %d", len(out), maxPatchedBytes))
	}
	return out, err
}

func operationError(err error) error {
	if err == nil {
		return nil
	}
	var tooLarge *jsonpatch.AccumulatedCopySizeError
	if errors.As(err, &tooLarge) {
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	return unprocessable(err)
}

func strategicError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return badRequest("%v", err)
	}
	return unprocessable(err)
}

// unprocessable is a patch that is well formed and does not fit the object.
func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", groupless, "", err.Error(), 0, false)
}

// PatchOptions are the options of a patch.
type PatchOptions struct {
	WriteOptions
	// Force lets a server-side apply take fields from other managers.
	Force bool
	// Decode turns the patched JSON into an object of the endpoint, and says
	// what it thinks of unknown fields.
	Decode func(patched []byte) (resource.Object, error)
}

// Patch applies a patch to the object. A write that comes first is patched in
// turn, unless the patch itself names a resourceVersion, which then no longer
// is the current one.
func (r Registry) Patch(ctx context.Context, namespace, name string, patch *Patch, opts PatchOptions) (*Result, error) {
	return r.patch(ctx, namespace, name, partMain, "", patch, opts)
}

// PatchStatus applies a patch to the object and takes over its status.
func (r Registry) PatchStatus(ctx context.Context, namespace, name string, patch *Patch, opts PatchOptions) (*Result, error) {
	if !r.res.Status {
		return nil, badRequest("%s have no status subresource", r.res.GroupResource())
	}
	return r.patch(ctx, namespace, name, partStatus, "status", patch, opts)
}

func (r Registry) patch(ctx context.Context, namespace, name string, of part, subresource string, patch *Patch, opts PatchOptions) (*Result, error) {
	if isApply(patch.kind) {
		return r.apply(ctx, namespace, name, of, subresource, patch, opts)
	}
	like := r.res.New()
	c := &change{Registry: r, namespace: namespace, name: name, of: of, subresource: subresource}
	c.opts = UpdateOptions{WriteOptions: opts.WriteOptions, Unconditional: true}
	return r.guarded(ctx, namespace, name, opts.DryRun, func(cur *state) (decision, error) {
		if cur.object == nil {
			return decision{}, r.notFound(name)
		}
		patched := func(resource.Object) (resource.Object, error) {
			doc, err := r.document(cur, patch)
			if err != nil {
				return nil, err
			}
			patched, err := patch.Apply(doc, like)
			if err != nil {
				return nil, r.about(name, err)
			}
			return r.decodePatched(patched, opts.Decode)
		}
		c.update = patched
		if of == partChosen {
			var err error
			if c.update, err = r.merging(subresource, patched); err != nil {
				return decision{}, err
			}
		}
		return c.decide(ctx, cur)
	})
}

// document returns a state as the JSON, in the endpoint's shape, that a patch
// is applied to. Of managedFields, which most patches say nothing of, it has
// none then: an object that comes without keeps those that it has.
func (r Registry) document(cur *state, patch *Patch) ([]byte, error) {
	json, err := cur.json, error(nil)
	if r.res != r.stored {
		json, err = r.res.Marshal(cur.object)
	}
	if err == nil && patch.kind != types.JSONPatchType && !bytes.Contains(patch.body, []byte("managedFields")) {
		json, err = resource.WithoutManagedFields(json)
	}
	if err != nil {
		return nil, r.storeError(cur.object.GetName(), err)
	}
	return json, nil
}

func (r Registry) decodePatched(patched []byte, decode func([]byte) (resource.Object, error)) (resource.Object, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(patched, " \t\r\n"), []byte("{")) {
		return nil, badRequest("the patch makes something of the object that is not an object")
	}
	if decode != nil {
		return decode(patched)
	}
	obj, _, _, err := r.res.DecodeBody(resource.MediaTypeJSON, patched)
	if err != nil {
		return nil, badRequest("the patched object cannot be decoded: %v", err)
	}
	return obj, nil
}

// about names the object in an error that was made without knowing it.
func (r Registry) about(name string, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Reason != metav1.StatusReasonInvalid {
		return err
	}
	status.ErrStatus.Details = &metav1.StatusDetails{Name: name, Group: r.res.Group, Kind: r.res.Plural}
	return status
}
