package objectmeta

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/scheme"
)

// ErrAlreadyControlled is what the error of [SetControllerReference] matches for
// an object that another owner controls: leave it alone.
var ErrAlreadyControlled = errors.New("the object has another controller")

// SetControllerReference makes owner the controller of obj: the garbage collector
// deletes obj when owner is gone, and controller.Owns maps obj to owner. The
// foreground deletion of owner waits for obj (blockOwnerDeletion).
//
// The owner's kind is that of its Go type in s, nil being scheme.Default, or the
// one that an unstructured owner carries. The owner must have been read from the
// server, because its UID is part of the reference, and be in the namespace of
// obj or of a cluster-scoped kind. An object has at most one controller: if it is
// another one, the error matches [ErrAlreadyControlled].
func SetControllerReference(owner, obj client.Object, s *scheme.Scheme) error {
	ref, err := referenceTo(owner, obj, s)
	if err != nil {
		return err
	}
	if other := metav1.GetControllerOf(obj); other != nil && other.UID != ref.UID {
		return fmt.Errorf("%s/%s: %w: %s %q", obj.GetNamespace(), obj.GetName(), ErrAlreadyControlled, other.Kind, other.Name)
	}
	yes := true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &yes
	setReference(obj, ref)
	return nil
}

// SetOwnerReference makes owner an owner of obj beside those that it has: obj is
// deleted when all owners are gone. A reference to owner that exists keeps what
// it says about control and blocking. The conditions are those of
// [SetControllerReference].
func SetOwnerReference(owner, obj client.Object, s *scheme.Scheme) error {
	ref, err := referenceTo(owner, obj, s)
	if err != nil {
		return err
	}
	setReference(obj, ref)
	return nil
}

// HasOwnerReference reports whether owner is among the owners of obj.
func HasOwnerReference(obj, owner metav1.Object) bool {
	return owner.GetUID() != "" && slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
}

// IsControlledBy reports whether owner is the controller of obj.
func IsControlledBy(obj, owner metav1.Object) bool {
	return owner.GetUID() != "" && metav1.IsControlledBy(obj, owner)
}

// RemoveOwnerReference removes owner from the owners of obj and returns whether
// obj was changed by that.
func RemoveOwnerReference(obj, owner metav1.Object) (changed bool) {
	if !HasOwnerReference(obj, owner) {
		return false
	}
	obj.SetOwnerReferences(slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }))
	return true
}

// referenceTo returns the reference of obj to owner, if there can be one.
func referenceTo(owner, obj client.Object, s *scheme.Scheme) (metav1.OwnerReference, error) {
	if s == nil {
		s = scheme.Default
	}
	kind, err := s.KindOf(owner)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("owner reference: %w", err)
	}
	if err := mayOwn(owner, obj, kind); err != nil {
		return metav1.OwnerReference{}, err
	}
	return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID()}, nil
}

// mayOwn refuses references that the garbage collector would take for references to
// an owner that is gone, and so delete the object.
func mayOwn(owner, obj client.Object, kind schema.GroupVersionKind) error {
	switch {
	case owner.GetUID() == "":
		return fmt.Errorf("owner reference to %s %q: the owner has no UID: read it from the server first", kind.Kind, owner.GetName())
	case owner.GetNamespace() != "" && obj.GetNamespace() == "":
		return fmt.Errorf("owner reference to %s %s/%s: %q has no namespace, and an object without one cannot be owned by an object with one: set its namespace",
			kind.Kind, owner.GetNamespace(), owner.GetName(), obj.GetName())
	case owner.GetNamespace() != "" && owner.GetNamespace() != obj.GetNamespace():
		return fmt.Errorf("owner reference to %s %s/%s: the owner of %s/%s must be in its namespace, or of a cluster-scoped kind",
			kind.Kind, owner.GetNamespace(), owner.GetName(), obj.GetNamespace(), obj.GetName())
	}
	return nil
}

// setReference adds ref, or replaces the reference to the same owner.
func setReference(obj metav1.Object, ref metav1.OwnerReference) {
	refs := slices.Clone(obj.GetOwnerReferences()) // that of a cached object may be shared
	at := slices.IndexFunc(refs, func(one metav1.OwnerReference) bool { return one.UID == ref.UID })
	if at < 0 {
		refs = append(refs, ref)
	} else {
		if ref.Controller == nil {
			ref.Controller, ref.BlockOwnerDeletion = refs[at].Controller, refs[at].BlockOwnerDeletion
		}
		refs[at] = ref
	}
	obj.SetOwnerReferences(refs)
}
