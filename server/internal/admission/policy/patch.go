package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celmutation "k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/levelwire/levelwire/server/internal/registry/fieldmanager"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// patcher changes one object as the value of an expression says.
type patcher struct {
	obj  resource.Object
	kind schema.GroupVersionKind
	// resource is that of the object, or nil for the body of a subresource.
	resource *resource.Resource
}

// patch returns the changed object; the one that it changes stays as it is.
func (p *patcher) patch(kind admissionv1.PatchType, by ref.Val) (changed resource.Object, err error) {
	defer func() {
		// The libraries panic on some values: a null in a path of a JSON patch, a number that no float holds. That
		// is a failure of the mutation, about which the policy decides.
		if cause := recover(); cause != nil {
			changed, err = nil, fmt.Errorf("the mutation cannot be applied: %v", cause)
		}
	}()
	if kind == admissionv1.PatchTypeJSONPatch {
		changed, err = p.jsonPatch(by)
	} else {
		changed, err = p.merge(by)
	}
	if err != nil {
		return nil, err
	}
	changed.GetObjectKind().SetGroupVersionKind(p.kind)
	if p.resource != nil && p.resource.Strategy.Default != nil {
		p.resource.Strategy.Default(changed)
	}
	return changed, nil
}

// jsonPatch applies a list of JSONPatch operations (RFC 6902). If a test fails, nothing changes.
func (p *patcher) jsonPatch(by ref.Val) (resource.Object, error) {
	operations, err := operationsOf(by)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(p.obj)
	if err != nil {
		return nil, fmt.Errorf("failed to create JSON patch: %w", err)
	}
	if err := patch.CheckOperations(operations, before); err != nil {
		return nil, fmt.Errorf("JSON Patch: %w", err)
	}
	after, err := operations.Apply(before)
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return p.obj.DeepCopyObject().(resource.Object), nil
	case err != nil:
		return nil, fmt.Errorf("JSON Patch: %w", err)
	}
	return p.decode(after)
}

// maxOperationBytes bounds the values of all operations: an expression may make thousands of one object. It is what a
// client may send.
const maxOperationBytes = 3 << 20

// operationsOf returns the operations that a list of JSONPatch values says.
func operationsOf(by ref.Val) (jsonpatch.Patch, error) {
	list, ok := by.(traits.Lister)
	if !ok {
		return nil, errors.New("type mismatch: JSONPatchType.expression should evaluate to array")
	}
	var operations jsonpatch.Patch
	size := 0
	for it := list.Iterator(); it.HasNext() == types.True; {
		native, err := it.Next().ConvertToNative(reflect.TypeFor[*celmutation.JSONPatchVal]())
		if err != nil {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: %w", err)
		}
		operation := native.(*celmutation.JSONPatchVal)
		members := map[string]any{"op": operation.Op, "path": operation.Path}
		if operation.From != "" {
			members["from"] = operation.From
		}
		if operation.Val != nil {
			if members["value"], err = jsonOf(operation.Val); err != nil {
				return nil, err
			}
		}
		encoded := jsonpatch.Operation{}
		for name, member := range members {
			data, err := json.Marshal(member)
			if err != nil {
				return nil, fmt.Errorf("JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w", err)
			}
			raw := json.RawMessage(data)
			encoded[name] = &raw
			size += len(data)
		}
		if operations = append(operations, encoded); size > maxOperationBytes {
			return nil, fmt.Errorf("the operations of the JSON patch have more than %d bytes", maxOperationBytes)
		}
	}
	return operations, nil
}

// jsonOf returns what a value is in JSON.
func jsonOf(v ref.Val) (any, error) {
	if object, ok := v.(*dynamic.ObjectVal); ok {
		if err := object.CheckTypeNamesMatchFieldPathNames(); err != nil {
			return nil, fmt.Errorf("type mismatch: %w", err)
		}
	}
	native, err := v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w", err)
	}
	return native, nil
}

// decode returns the object in JSON, in which every field must be known.
func (p *patcher) decode(data []byte) (resource.Object, error) {
	if _, ok := p.obj.(*unstructured.Unstructured); ok {
		u := &unstructured.Unstructured{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &u.Object); err != nil {
			return nil, err
		}
		return u, nil
	}
	into := reflect.New(reflect.TypeOf(p.obj).Elem()).Interface().(resource.Object)
	strict, err := kjson.UnmarshalStrict(data, into)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	return into, nil
}

// merge applies an apply configuration by the rules of server-side apply, without owners
// of fields.
func (p *patcher) merge(by ref.Val) (resource.Object, error) {
	object, ok := by.(*dynamic.ObjectVal)
	if !ok {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %v", by.Type())
	}
	if err := object.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, fmt.Errorf("type mismatch: %w", err)
	}
	fields, ok := object.Value().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid return type: %T", object.Value())
	}
	if p.resource == nil {
		return nil, fmt.Errorf("%s has no schema: use a JSONPatch", p.kind)
	}
	converter, err := fieldmanager.TypeConverter(p.resource)
	if err != nil {
		return nil, err
	}
	configuration := &unstructured.Unstructured{Object: fields}
	configuration.SetGroupVersionKind(p.kind)
	patch, err := converter.ObjectToTyped(configuration)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: failed to convert patch object to typed object: %w", err)
	}
	if atomics := atomicsIn(nil, patch.Schema(), patch.TypeRef(), patch.AsValue()); len(atomics) > 0 {
		return nil, fmt.Errorf("error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s", strings.Join(atomics, ", "))
	}
	live, err := converter.ObjectToTyped(p.obj, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: failed to convert original object to typed object: %w", err)
	}
	merged, err := live.Merge(patch)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: failed to merge patch: %w", err)
	}
	data, err := value.ToJSON(merged.AsValue())
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	return p.decode(data)
}

// atomicsIn returns the paths in an apply configuration at which it would replace a whole
// list or map: what its author did not list there would be lost.
func atomicsIn(path fieldpath.Path, s *smdschema.Schema, of smdschema.TypeRef, v value.Value) (found []string) {
	atom, ok := s.Resolve(of)
	if !ok {
		return nil
	}
	if v.IsMap() && atom.Map != nil {
		if atom.Map.ElementRelationship == smdschema.Atomic {
			found = append(found, path.String())
		}
		v.AsMap().Iterate(func(key string, member value.Value) bool {
			if field, ok := atom.Map.FindField(key); ok {
				found = append(found, atomicsIn(append(path, fieldpath.PathElement{FieldName: &key}), s, field.Type, member)...)
			}
			return true
		})
	}
	if v.IsList() && atom.List != nil {
		if atom.List.ElementRelationship == smdschema.Atomic {
			found = append(found, path.String())
		}
		list := v.AsList()
		for i := range list.Length() {
			found = append(found, atomicsIn(append(path, fieldpath.PathElement{Index: &i}), s, atom.List.ElementType, list.At(i))...)
		}
	}
	return found
}
