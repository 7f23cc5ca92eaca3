package informer

import (
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// transformed returns what is stored in obj's place.
func (i *SharedInformer[T]) transformed(obj T) T {
	if i.transform == nil {
		return obj
	}
	is := identityOf(obj)
	changed, err := i.callTransform(obj)
	if err == nil {
		err = checkTransformed(changed, is.namespace, is.name)
	}
	if err == nil {
		return changed
	}
	i.untransformed.Add(1)
	i.log.Warn("object is stored as it came", "namespace", is.namespace, "name", is.name, "error", err)
	is.restore(obj)
	return obj
}

// identity is what says which state of which object one is. The store cannot take an
// object without a name; without UID and version, updates and deletions would be taken for
// old ones, or for those of another object.
type identity struct {
	namespace, name, version string
	uid                      types.UID
}

func identityOf(obj client.Object) identity {
	return identity{obj.GetNamespace(), obj.GetName(), obj.GetResourceVersion(), obj.GetUID()}
}

// restore gives an object its identity back that a transform may have overwritten.
func (is identity) restore(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if _, ok := u.Object["metadata"].(map[string]any); !ok {
			delete(u.Object, "metadata") // in which nothing can be set
		}
	}
	obj.SetNamespace(is.namespace)
	obj.SetName(is.name)
	obj.SetUID(is.uid)
	obj.SetResourceVersion(is.version)
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
