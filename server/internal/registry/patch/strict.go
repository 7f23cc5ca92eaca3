package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/levelwire/levelwire/server/internal/status"
)

// jsonPatchOp is an operation of a JSON patch with the members that it may have.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// StrictErrors returns an error for each field that the patch names twice, and for each
// member of an operation that JSON patches do not have. Fields that are unknown show in
// the patched document.
func (p *Patch) StrictErrors() []error { return p.strict }

// Quoted is the patch as the refusal of what it makes of an object quotes it: a strategic
// merge patch itself, as the merge has left it, else the patched document. The merge writes to
// the patch: of two elements of a list with one merge key, the first gets what the second has.
func (p *Patch) Quoted(patched []byte) string {
	if p.kind != types.StrategicMergePatchType {
		return string(patched)
	}
	fields := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(p.sent, &fields); err != nil {
		return string(p.sent)
	}
	maps.Copy(fields, p.left)
	return fmt.Sprintf("%+v", fields)
}

// IsStrategic reports whether the patch is a strategic merge patch.
func (p *Patch) IsStrategic() bool { return p.kind == types.StrategicMergePatchType }

// IsMerge reports whether it is a JSON merge patch (RFC 7386).
func (p *Patch) IsMerge() bool { return p.kind == types.MergePatchType }

// parseMerge reads the members of a merge patch of either kind.
func (p *Patch) parseMerge() error {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(p.body, &doc); err != nil {
		return p.notAnObject(err)
	}
	if doc == nil {
		if p.kind == types.MergePatchType {
			return status.BadRequest("Invalid JSON Patch") // clients know this text
		}
		p.body = []byte("{}")
	}
	// One pass finds out whether there is anything to look for.
	if valid := jsontext.Value(p.body).IsValid(); !valid {
		fields := map[string]any{}
		var err error
		if p.strict, err = kjson.UnmarshalStrict(p.body, &fields); err != nil {
			return p.notAnObject(err)
		}
	} else if p.kind == types.MergePatchType {
		p.onePass = true
	}
	if p.kind == types.StrategicMergePatchType {
		if err := p.leaveKind(doc); err != nil {
			return err
		}
	}
	for name := range doc {
		p.touched.add(name)
	}
	return nil
}

// leaveKind takes kind and apiVersion from a strategic merge patch: the object that it is
// applied to has a Go type, and stays of that kind whatever they say.
func (p *Patch) leaveKind(doc map[string]json.RawMessage) error {
	named := false
	for _, name := range []string{"kind", "apiVersion"} {
		if value, ok := doc[name]; ok && (value[0] == '"' || isNull(value)) {
			named = true
			delete(doc, name)
		}
	}
	if !named {
		return nil
	}
	rest := make([]byte, 0, len(p.body)+2)
	err := eachMember(p.body, func(m member) error {
		if _, ok := doc[m.name]; ok {
			rest = m.append(rest)
		}
		return nil
	})
	if err != nil {
		return p.notAnObject(err)
	}
	p.body = object(rest, 0)
	return nil
}

// notAnObject is Kubernetes' error for a merge patch that is no JSON object.
func (p *Patch) notAnObject(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return status.BadRequest("invalid JSON patch")
	}
	if strict := kjson.UnmarshalCaseSensitivePreserveInts(p.body, &map[string]any{}); strict != nil {
		err = strict
	}
	if p.kind == types.MergePatchType {
		err = fmt.Errorf("error decoding patch: %w", err)
	}
	return status.BadRequest("%v", err)
}

// checkOperations reads a JSON patch as strictly as its members allow.
func (p *Patch) checkOperations() error {
	var operations []jsonPatchOp
	strict, err := kjson.UnmarshalStrict(p.body, &operations)
	switch {
	case err != nil && !json.Valid(p.body):
		return status.BadRequest("invalid JSON patch")
	case err != nil:
		return status.BadRequest("error decoding patch: %v", err)
	}
	for _, err := range strict {
		p.strict = append(p.strict, fmt.Errorf("json patch %w", err))
	}
	return nil
}
