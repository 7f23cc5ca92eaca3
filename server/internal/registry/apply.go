package registry

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// isApply says whether a patch is server-side apply: not a change, but what a
// manager wants of an object.
func isApply(kind types.PatchType) bool {
	return kind == types.ApplyYAMLPatchType || kind == types.ApplyCBORPatchType
}

// parseApply decodes what is to be applied, of whatever kind it says it is: the
// field manager compares that with the endpoint.
func (p *Patch) parseApply() error {
	p.wanted = &unstructured.Unstructured{}
	var err error
	if p.strict, err = decodeApply(p.kind, p.body, p.wanted); err != nil {
		return badRequest("error decoding YAML: %v", err)
	}
	if nestsDeeper(p.wanted.Object, maxPatchDepth) {
		return badRequest("the patch nests deeper than %d levels", maxPatchDepth)
	}
	return nil
}

// decodeApply reads what most programs send, JSON, without the detour over YAML.
func decodeApply(kind types.PatchType, body []byte, wanted *unstructured.Unstructured) (strict []error, err error) {
	mediaType := resource.MediaTypeYAML
	switch {
	case kind == types.ApplyCBORPatchType:
		mediaType = resource.MediaTypeCBOR
	case bytes.HasPrefix(body, []byte("{")):
		if _, strict, err = resource.DecodeAny(resource.MediaTypeJSON, body, wanted); err == nil {
			return strict, nil
		}
	}
	_, strict, err = resource.DecodeAny(mediaType, body, wanted)
	return strict, err
}

// nestsDeeper bounds what recursion over a decoded document costs.
func nestsDeeper(value any, levels int) bool {
	if levels == 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if nestsDeeper(member, levels-1) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if nestsDeeper(item, levels-1) {
				return true
			}
		}
	}
	return false
}

// apply merges what the patch wants into the object, or creates it.
//
// opts.Decode is not asked: what the kind's schema does not know is refused.
func (r Registry) apply(ctx context.Context, namespace, name string, of part, subresource string, patch *Patch, opts PatchOptions) (*Result, error) {
	c := &change{Registry: r, namespace: namespace, name: name, of: of, subresource: subresource, rule: ownersDecided}
	c.opts = UpdateOptions{WriteOptions: opts.WriteOptions, Unconditional: true, MayCreate: true}
	c.update = func(current resource.Object) (resource.Object, error) {
		obj, err := r.fieldManager(subresource).Apply(ctx, current, patch.wanted, opts.FieldManager, opts.Force)
		if err != nil {
			return nil, unapplied(err)
		}
		return obj, nil
	}
	if of == partChosen {
		var err error
		if c.update, err = r.merging(subresource, c.update); err != nil {
			return nil, err
		}
	}
	return c.run(ctx)
}

// unapplied is why something could not be applied. What does not fit the kind's
// schema is a 500 without a reason, as with Kubernetes.
func unapplied(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown, Message: err.Error(),
	}}
}
