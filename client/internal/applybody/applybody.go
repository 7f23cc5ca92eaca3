// Package applybody makes the body of a server-side apply from a Go value: a
// struct of the API, an apply configuration of client-go, or unstructured.
//
// A body of apply says which fields its manager wants, so a field that the
// caller did not set must not be in it. Structs of the API have fields that
// encoding/json writes although they were not set: creationTimestamp as null,
// an empty status, a targetPort of 0. This package leaves them out.
package applybody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/internal/wirefield"
)

// Body is the body of an apply, and what it says about its object.
type Body struct {
	JSON            []byte
	Name, Namespace string
}

// errRead refuses an object that a server sent.
var errRead = errors.New("the object has managedFields or a creationTimestamp, so it is one that a server sent, and applying it would own " +
	"every field of it: apply a new object that has only the fields you manage")

// Of makes the body of an apply. kind is what the object is if neither the scheme nor
// the object itself says so; it may be empty. Of does not change obj.
func Of(s *scheme.Scheme, obj any, kind schema.GroupVersionKind) (Body, error) {
	tree, err := treeOf(s, obj, kind)
	if err != nil {
		return Body{}, err
	}
	metadata, _ := tree["metadata"].(map[string]any)
	if metadata["managedFields"] != nil || metadata["creationTimestamp"] != nil {
		return Body{}, errRead
	}
	body := Body{}
	body.Name, _ = metadata["name"].(string)
	body.Namespace, _ = metadata["namespace"].(string)
	if body.Name == "" {
		return Body{}, errors.New("the object has no metadata.name, which an apply needs: generateName is not enough")
	}
	if tree["kind"] == nil && !kind.Empty() {
		tree["apiVersion"], tree["kind"] = kind.GroupVersion().String(), kind.Kind
	}
	if version, _ := tree["apiVersion"].(string); version == "" || tree["kind"] == nil || tree["kind"] == "" {
		return Body{}, fmt.Errorf("%T does not say its apiVersion and kind: set them", obj)
	}
	body.JSON, err = json.Marshal(tree)
	return body, err
}

// treeOf returns the fields that obj sets. The caller may change the result's
// own members, not what is below them.
func treeOf(s *scheme.Scheme, obj any, kind schema.GroupVersionKind) (map[string]any, error) {
	v := reflect.ValueOf(obj)
	if obj == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("the object to apply is nil (%T)", obj)
	}
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		tree := make(map[string]any, len(obj.Object))
		for name, value := range obj.Object {
			tree[name] = value
		}
		return tree, nil
	case runtime.ApplyConfiguration:
		data, err := json.Marshal(obj)
		if err != nil {
			return nil, err
		}
		return decode(data)
	case runtime.Object:
		data, err := encode(s, obj, kind)
		if err != nil {
			return nil, err
		}
		tree, err := decode(data)
		if err != nil {
			return nil, err
		}
		apiVersion, kind := tree["apiVersion"], tree["kind"] // obj itself may not say them
		dropUnset(tree, v)
		if kind != nil && kind != "" {
			tree["apiVersion"], tree["kind"] = apiVersion, kind
		}
		return tree, nil
	}
	return nil, fmt.Errorf("%T cannot be applied: want a struct of the API, an apply configuration or *unstructured.Unstructured", obj)
}

// encode encodes obj, with its kind if that is known without kind.
func encode(s *scheme.Scheme, obj runtime.Object, kind schema.GroupVersionKind) ([]byte, error) {
	data, _, err := codec.Encode(s, obj, false)
	if err != nil && !kind.Empty() { // the endpoint knows it
		return json.Marshal(obj)
	}
	return data, err
}

// decode keeps numbers as they are written: an int64 does not fit a float64.
func decode(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("an object is expected: %w", err)
	}
	return tree, nil
}

// dropUnset removes from value, the JSON of v, the fields of structs that have
// Go's zero value, and those whose struct has become empty by that. What a
// pointer, a slice or a map holds was set: 0 behind a pointer, an element {} and
// an entry "" stay.
func dropUnset(value any, v reflect.Value) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		switch {
		case wirefield.HasOwnJSON(v.Type()):
		case v.Kind() == reflect.Struct:
			dropUnsetFields(value, v)
		case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
			for each := v.MapRange(); each.Next(); {
				dropUnset(value[each.Key().String()], each.Value())
			}
		}
	case []any:
		if (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && v.Len() == len(value) {
			for n := range value {
				dropUnset(value[n], v.Index(n))
			}
		}
	}
}

func dropUnsetFields(object map[string]any, v reflect.Value) {
	for _, member := range membersOf(v.Type()) {
		value, ok := object[member.Name]
		if !ok {
			continue
		}
		field, err := v.FieldByIndexErr(member.Go.Index)
		if err != nil {
			continue // within an embedded pointer that is nil
		}
		if value == nil || !isReference(field.Kind()) && field.IsZero() {
			delete(object, member.Name)
			continue
		}
		dropUnset(value, field)
		if inner, ok := value.(map[string]any); ok && len(inner) == 0 && field.Kind() == reflect.Struct {
			delete(object, member.Name)
		}
	}
}

// knownMembers are the members of the struct types that were met: a
// []wirefield.Field by reflect.Type. Programs have few such types.
var knownMembers sync.Map

func membersOf(t reflect.Type) []wirefield.Field {
	if known, ok := knownMembers.Load(t); ok {
		return known.([]wirefield.Field)
	}
	members := wirefield.Members(t)
	knownMembers.Store(t, members)
	return members
}

// isReference reports whether the zero value of a kind is nil, and any other
// was set.
func isReference(kind reflect.Kind) bool {
	return kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map || kind == reflect.Interface
}
