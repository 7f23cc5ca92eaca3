package cache

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// KeyFunc returns the key under which an object is stored. Two objects with
// one key are two states of one object.
type KeyFunc[T any] func(obj T) (string, error)

// named, identified and versioned are the parts of metav1.Object that this
// package looks at.
type named interface {
	GetNamespace() string
	GetName() string
}

type identified interface{ GetUID() types.UID }

type versioned interface{ GetResourceVersion() string }

// MetaNamespaceKey is the key of an API object: "namespace/name", or "name"
// without a namespace. It fails for a type that has neither and for an object
// without a name.
func MetaNamespaceKey[T any](obj T) (string, error) {
	n, ok := any(obj).(named)
	if !ok {
		return "", fmt.Errorf("%T has no namespace and name: pass a KeyFunc for it", obj)
	}
	name := n.GetName()
	if name == "" {
		return "", fmt.Errorf("%T in namespace %q has no name", obj, n.GetNamespace())
	}
	return ObjectKey(n.GetNamespace(), name), nil
}

// ObjectKey returns the key of the object with this namespace ("" for none)
// and name.
func ObjectKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// SplitObjectKey is the inverse of ObjectKey.
func SplitObjectKey(key string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		return "", key, nil
	}
	if strings.Contains(name, "/") {
		return "", "", fmt.Errorf("key %q is neither \"name\" nor \"namespace/name\"", key)
	}
	return namespace, name, nil
}

// uidOf returns "" for a type without UIDs.
func uidOf[T any](obj T) types.UID {
	if o, ok := any(obj).(identified); ok {
		return o.GetUID()
	}
	return ""
}
