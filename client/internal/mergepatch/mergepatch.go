// Package mergepatch makes JSON merge patches (RFC 7386) from two states of an
// object.
package mergepatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of returns what is to be changed in old so that it becomes changed: a merge
// patch, empty if nothing is. The server's own entries, resourceVersion and
// managedFields, are not compared. It is an error if old and changed are not two
// states of one object.
func Of(old, changed metav1.Object) (map[string]any, error) {
	before, after, err := Trees(old, changed)
	if err != nil {
		return nil, err
	}
	return difference(before, after), nil
}

// Trees returns two states of one object as JSON has them, without the entries
// that are not compared.
func Trees(old, changed metav1.Object) (before, after map[string]any, err error) {
	if err := sameObject(old, changed); err != nil {
		return nil, nil, err
	}
	if before, err = tree(old); err != nil {
		return nil, nil, err
	}
	after, err = tree(changed)
	return before, after, err
}

// Lock adds to a patch that the object must still have a resourceVersion: the
// server refuses it with a conflict otherwise.
func Lock(patch map[string]any, resourceVersion string) error {
	if resourceVersion == "" {
		return errors.New("OptimisticLock needs a resourceVersion in the old object: read it from the server first")
	}
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = resourceVersion
	return nil
}

func sameObject(old, changed metav1.Object) error {
	switch {
	case isNil(old) || isNil(changed):
		return errors.New("the old or the changed object is nil")
	case old.GetName() == "":
		return errors.New("the object's name is empty")
	case old.GetName() != changed.GetName() || old.GetNamespace() != changed.GetNamespace():
		return fmt.Errorf("a patch cannot rename an object: the old one is %s/%s, the changed one %s/%s",
			old.GetNamespace(), old.GetName(), changed.GetNamespace(), changed.GetName())
	case old.GetUID() != changed.GetUID():
		return fmt.Errorf("the old object and the changed one are different objects of the name %s (UIDs %s and %s)", old.GetName(), old.GetUID(), changed.GetUID())
	}
	return nil
}

func isNil(obj metav1.Object) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// tree returns an object as JSON has it, numbers as they are written.
func tree(obj metav1.Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
	}
	return object, nil
}

// difference is the merge patch from before to after. A null and no entry are
// the same to it, as they are to a server that applies it.
func difference(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for name, old := range before {
		if old != nil && after[name] == nil {
			patch[name] = nil
		}
	}
	for name, value := range after {
		old := before[name]
		if value == nil || reflect.DeepEqual(old, value) {
			continue
		}
		oldObject, wasObject := old.(map[string]any)
		object, isObject := value.(map[string]any)
		if !wasObject || !isObject {
			patch[name] = value
			continue
		}
		if inner := difference(oldObject, object); len(inner) > 0 {
			patch[name] = inner
		}
	}
	return patch
}
