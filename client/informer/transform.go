package informer

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// transformed returns what is stored in obj's place.
func (i *SharedInformer[T]) transformed(obj T) T {
	if i.transform == nil {
		return obj
	}
	namespace, name := obj.GetNamespace(), obj.GetName()
	changed, err := i.callTransform(obj)
	if err == nil {
		err = checkTransformed(changed, namespace, name)
	}
	if err == nil {
		return changed
	}
	i.untransformed.Add(1)
	i.log.Warn("object is stored as it came", "namespace", namespace, "name", name, "error", err)
	obj.SetNamespace(namespace) // the transform may have written to it
	obj.SetName(name)
	return obj
}

// callTransform contains a panic: the other objects, and other informers, are not affected.
func (i *SharedInformer[T]) callTransform(obj T) (changed T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the transform panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return i.transform(obj)
}

// checkTransformed refuses what cannot be stored in the place of the object of this name.
func checkTransformed[T interface {
	GetNamespace() string
	GetName() string
}](changed T, namespace, name string) error {
	if isNil(changed) {
		return errors.New("the transform returned nil")
	}
	if changed.GetNamespace() != namespace || changed.GetName() != name {
		return fmt.Errorf("the transform returned an object of another name: %q in namespace %q", changed.GetName(), changed.GetNamespace())
	}
	return nil
}
