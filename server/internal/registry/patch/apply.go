package patch

import (
	"bytes"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// IsApply reports whether the patch is a server-side apply: not a change, but
// the fields that a manager wants an object to have.
func (p *Patch) IsApply() bool {
	return p.kind == types.ApplyYAMLPatchType || p.kind == types.ApplyCBORPatchType
}

// Wanted returns the fields that a server-side apply wants. It is shared, and
// must not be modified.
func (p *Patch) Wanted() *unstructured.Unstructured { return p.wanted }

// LeavesManagedFields reports whether the patch surely does not touch
// metadata.managedFields.
func (p *Patch) LeavesManagedFields() bool {
	if p.kind == types.JSONPatchType {
		return !p.touched.any && !slices.Contains(p.touched.names, "metadata")
	}
	return !bytes.Contains(p.body, []byte("managedFields"))
}

// parseApply decodes the wanted fields, of whatever kind they say they are of:
// the field manager compares that with the endpoint.
func (p *Patch) parseApply() error {
	p.wanted = &unstructured.Unstructured{}
	var err error
	if p.strict, err = decodeApply(p.kind, p.body, p.wanted); err != nil {
		if err := p.notApplicable(err); err != nil {
			return err
		}
		p.wanted.Object = map[string]any{}
	}
	if len(p.strict) > 0 { // which Kubernetes finds by reading the patch as YAML, whatever it is
		if err := yaml.UnmarshalStrict(p.body, &map[string]any{}); err != nil {
			p.strict = []error{err}
		}
	}
	if nestsDeeper(p.wanted.Object, maxPatchDepth) {
		return status.BadRequest("the patch nests deeper than %d levels", maxPatchDepth)
	}
	return nil
}

// notApplicable is Kubernetes' error for what is applied and cannot be read: err is why. What is
// empty, or null, is read as an object without fields.
func (p *Patch) notApplicable(err error) error {
	var bound *resource.BoundError
	if p.kind == types.ApplyCBORPatchType || errors.As(err, &bound) {
		return status.BadRequest("error decoding patch: %v", err)
	}
	if _, err := utilyaml.ToJSON(p.body); err != nil {
		return status.BadRequest("error encoding patch: %v", err)
	}
	var fields map[string]any
	words := utilyaml.Unmarshal(p.body, &fields)
	switch {
	case words != nil:
		err = words
	case fields == nil:
		return nil
	}
	return status.BadRequest("error decoding patch: %v", err)
}

// decodeApply decodes JSON, which most programs send, without the detour over
// YAML.
func decodeApply(kind types.PatchType, body []byte, wanted *unstructured.Unstructured) (strict []error, err error) {
	mediaType := resource.MediaTypeYAML
	switch {
	case kind == types.ApplyCBORPatchType:
		mediaType = resource.MediaTypeCBOR
	case bytes.HasPrefix(body, []byte("{")):
		if strict, err = resource.DecodeFields(resource.MediaTypeJSON, body, wanted); err == nil {
			return strict, nil
		}
	}
	return resource.DecodeFields(mediaType, body, wanted)
}

// nestsDeeper reports whether a decoded document nests deeper than so many levels,
// which recursion over it would cost.
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
