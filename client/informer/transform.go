package informer

import (
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/internal/contain"
	"github.com/levelwire/levelwire/client/internal/deepcopy"
)

// transformed returns what is stored in obj's place: what the transform makes of it, or, if
// that fails, obj as it came. The transform gets a copy: by the time it fails, it may have
// made a state of the object that never was.
func (i *SharedInformer[T]) transformed(obj T) T {
	if i.transform == nil {
		return obj
	}
	changed, err := i.callTransform(obj)
	if err == nil {
		err = checkTransformed(changed, obj.GetNamespace(), obj.GetName())
	}
	if err == nil {
		return changed
	}
	i.untransformed.Add(1)
	i.failures.warn(i.log, "object is stored as it came", cache.ObjectKey(obj.GetNamespace(), obj.GetName()), err)
	return obj
}

// callTransform contains a panic, also one of the object's DeepCopyObject: the other objects, and other informers,
// are not affected.
func (i *SharedInformer[T]) callTransform(obj T) (changed T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = contain.Recovered("the transform", r)
		}
	}()
	if !i.transformIsSafe {
		obj = deepcopy.Of(obj)
	}
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
