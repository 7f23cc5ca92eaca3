// Package patch parses the patches that clients send (JSON patch, JSON merge
// patch, strategic merge patch and server-side apply), bounds what applying them
// may cost, and applies the first three to JSON documents. It knows no registry.
package patch

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"

	"github.com/levelwire/levelwire/server/internal/status"
)

// Bounds of a JSON patch, which can make much out of little.
const (
	maxPatchOperations = 10_000
	maxPatchedBytes    = 3 << 20
)

// The library knows this bound only as a variable of its own.
func init() { jsonpatch.AccumulatedCopySizeLimit = maxPatchedBytes }

// Patch is a parsed patch: one that turns a JSON document into another, or
// (server-side apply) the fields that a manager wants an object to have. It is
// immutable.
type Patch struct {
	kind types.PatchType
	sent []byte
	body []byte         // what of it is applied
	left map[string]any // what the last strategic merge has left of the body, see Quoted
	ops  jsonpatch.Patch

	size    documentSize
	levels  int // see levelsOf
	touched members
	onePass bool // see mergesInOnePass

	wanted *unstructured.Unstructured // of server-side apply
	strict []error
}

// Parse parses a patch and checks what does not depend on the document that it
// is applied to. Its errors are *apierrors.StatusErrors.
func Parse(kind types.PatchType, body []byte) (*Patch, error) {
	p := &Patch{kind: kind, sent: body, body: body}
	switch kind {
	case types.JSONPatchType:
		if err := p.parseOperations(); err != nil {
			return nil, err
		}
		return p, p.checkDepth()
	case types.MergePatchType, types.StrategicMergePatchType:
		if err := p.parseMerge(); err != nil {
			return nil, err
		}
		return p, p.checkDepth()
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		return p, p.parseApply()
	}
	return nil, CheckKind(kind, false)
}

var (
	kinds = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType, types.ApplyCBORPatchType}
	// customKinds are those that custom resources, and their subresources, take: nothing says how
	// a strategic merge patch merges their lists.
	customKinds = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType, types.ApplyCBORPatchType}
)

// CheckKind refuses a patch of a kind that is not known, or that custom resources do not take.
func CheckKind(kind types.PatchType, custom bool) error {
	accepted := kinds
	if custom {
		accepted = customKinds
	}
	if slices.Contains(accepted, kind) {
		return nil
	}
	names := make([]string, len(accepted))
	for i, kind := range accepted {
		names[i] = string(kind)
	}
	return status.Failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(names, ", "))
}

func (p *Patch) parseOperations() error {
	err := p.checkOperations()
	if err != nil {
		return err
	}
	if p.ops, err = jsonpatch.DecodePatch(p.body); err != nil {
		return status.BadRequest("%v", err)
	}
	if n := len(p.ops); n > maxPatchOperations {
		return tooManyOperations(n)
	}
	for _, op := range p.ops {
		p.touched.addOperation(op)
	}
	p.levels = levelsOf(p.ops)
	return nil
}

// Apply returns the patched document. It does not change doc. like is an object
// of the Go type whose tags say how a strategic merge treats lists.
func (p *Patch) Apply(doc []byte, like any) (out []byte, err error) {
	defer func() {
		// The patch libraries index what clients sent. A panic in them is the
		// patch's fault, and nothing has been written.
		if cause := recover(); cause != nil {
			out, err = nil, status.BadRequest("the patch cannot be applied: %v", cause)
		}
	}()
	switch p.kind {
	case types.JSONPatchType:
		out, err = p.applyOperations(doc)
	case types.MergePatchType:
		out, err = p.applyMerge(doc)
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		return nil, status.BadRequest("what is applied is merged into an object, not into a document")
	default:
		if _, custom := like.(*unstructured.Unstructured); custom {
			return nil, CheckKind(p.kind, true)
		}
		if err := p.checkElements(doc); err != nil {
			return nil, err
		}
		out, err = p.applyToTouched(doc, func(doc []byte) ([]byte, error) { return p.applyStrategic(doc, like) })
		err = strategicError(err)
	}
	if err == nil && len(out) > maxPatchedBytes {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the patched object has %d bytes, the limit is %d", len(out), maxPatchedBytes))
	}
	return out, err
}

// applyOperations applies a JSON patch.
func (p *Patch) applyOperations(doc []byte) ([]byte, error) {
	if err := p.checkMoves(doc); err != nil {
		return nil, err
	}
	if err := p.checkLevels("a JSON patch", p.levels, doc, "patch a higher level"); err != nil {
		return nil, err
	}
	out, err := p.ops.Apply(doc)
	return out, operationError(err)
}

// applyMerge applies a merge patch.
func (p *Patch) applyMerge(doc []byte) (out []byte, err error) {
	if p.onePass {
		out, err = merge(make([]byte, 0, len(doc)+len(p.body)), doc, p.body)
	} else if err = p.checkLevels("a merge patch", p.size.depth, doc, "name each member once"); err != nil {
		return nil, err
	} else {
		out, err = jsonpatch.MergePatch(doc, p.body)
	}
	if err != nil {
		err = status.BadRequest("the merge patch cannot be applied: %v", err)
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
	// The message is Kubernetes', which does not say why. The cause does.
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, true)
}

func strategicError(err error) error {
	switch {
	case err == nil, apierrors.IsRequestEntityTooLargeError(err):
		return err
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return status.BadRequest("%v", err)
	}
	// Kubernetes has a 500 with these words.
	return status.Failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
}
