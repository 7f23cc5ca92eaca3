// Package specstatus knows which part of an object is its status, and which what its owner wants.
package specstatus

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/structequal"
)

// layout says which fields of a Go type are its status, and the rest that is not
// metadata.
type layout struct {
	status int // index of the field, -1 if there is none
	rest   []int
}

var layouts sync.Map // reflect.Type -> layout; one entry per kind in the binary

func layoutOf(t reflect.Type) layout {
	if l, ok := layouts.Load(t); ok {
		return l.(layout)
	}
	l := layout{status: -1}
	for i := range t.NumField() {
		switch t.Field(i).Name {
		case "TypeMeta", "ObjectMeta":
		case "Status":
			l.status = i
		default:
			l.rest = append(l.rest, i)
		}
	}
	layouts.Store(t, l)
	return l
}

// structOf returns the struct behind a typed object.
func structOf(obj resource.Object) (reflect.Value, layout) {
	v := reflect.ValueOf(obj).Elem()
	return v, layoutOf(v.Type())
}

// ClearStatus takes the status away.
func ClearStatus(obj resource.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		delete(u.Object, "status")
		return
	}
	if v, l := structOf(obj); l.status >= 0 {
		v.Field(l.status).SetZero()
	}
}

// CopyStatus gives obj the status of old. The two share memory then.
func CopyStatus(obj, old resource.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		from := old.(*unstructured.Unstructured)
		if status, ok := from.Object["status"]; ok {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
		return
	}
	if v, l := structOf(obj); l.status >= 0 {
		from, _ := structOf(old)
		v.Field(l.status).Set(from.Field(l.status))
	}
}

// KeepAllButStatus takes from old what an update of the status must not change: the
// rest of the object, and the metadata that the kind keeps. A custom resource keeps all of it.
func KeepAllButStatus(obj, old resource.Object, keeps resource.Metadata) {
	keeps.Take(obj, old)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		keepAllButStatusOfMap(u, old.(*unstructured.Unstructured))
		return
	}
	v, l := structOf(obj)
	from, _ := structOf(old)
	for _, i := range l.rest {
		v.Field(i).Set(from.Field(i))
	}
}

func keepAllButStatusOfMap(u, old *unstructured.Unstructured) {
	version, managed := u.GetResourceVersion(), u.GetManagedFields()
	whole := make(map[string]any, len(old.Object)+1)
	for key, value := range old.Object {
		whole[key] = value
	}
	if metadata, ok := old.Object["metadata"].(map[string]any); ok {
		copied := make(map[string]any, len(metadata))
		for key, value := range metadata {
			copied[key] = value
		}
		whole["metadata"] = copied
	}
	delete(whole, "status")
	if status, ok := u.Object["status"]; ok {
		whole["status"] = status
	}
	u.Object = whole
	u.SetResourceVersion(version)
	u.SetManagedFields(managed)
}

// SameSpec reports whether only metadata and status differ. The status of a
// custom resource without the status subresource counts as spec.
func SameSpec(res *resource.Resource, obj, old resource.Object) bool {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		from := old.(*unstructured.Unstructured)
		if !res.Status && !equality.Semantic.DeepEqual(u.Object["status"], from.Object["status"]) {
			return false
		}
		return sameSpecOfMaps(u.Object, from.Object)
	}
	v, l := structOf(obj)
	from, _ := structOf(old)
	for _, i := range l.rest {
		if !structequal.SemanticValues(v.Field(i), from.Field(i)) {
			return false
		}
	}
	return true
}

func sameSpecOfMaps(a, b map[string]any) bool {
	seen := 0
	for key, value := range a {
		if partOfEnvelope(key) {
			continue
		}
		other, ok := b[key]
		if !ok || !equality.Semantic.DeepEqual(value, other) {
			return false
		}
		seen++
	}
	for key := range b {
		if !partOfEnvelope(key) {
			seen--
		}
	}
	return seen == 0
}

func partOfEnvelope(key string) bool {
	switch key {
	case "kind", "apiVersion", "metadata", "status":
		return true
	}
	return false
}
