// Package objectmeta changes the metadata of objects: finalizers and owner
// references. The functions change the object in memory only; write it with
// client.Resource.UpdateWithRetry or MergePatch, for instance.
//
// Reading order: finalizer.go, owner.go.
package objectmeta

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsBeingDeleted reports whether a deletion was requested. The object exists until
// its last finalizer is removed, and takes no new ones.
func IsBeingDeleted(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }

// HasFinalizer reports whether the object has a finalizer.
func HasFinalizer(obj metav1.Object, finalizer string) bool {
	return slices.Contains(obj.GetFinalizers(), finalizer)
}

// AddFinalizer adds a finalizer, a qualified name such as "example.com/disk", and
// returns whether the object was changed by that. A controller adds it, and
// writes the object, before it makes anything that must not outlive the object.
func AddFinalizer(obj metav1.Object, finalizer string) (changed bool) {
	if HasFinalizer(obj, finalizer) {
		return false
	}
	// A new slice: that of a cached object may be shared.
	obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), finalizer))
	return true
}

// RemoveFinalizer removes a finalizer and returns whether the object was changed
// by that.
func RemoveFinalizer(obj metav1.Object, finalizer string) (changed bool) {
	if !HasFinalizer(obj, finalizer) {
		return false
	}
	obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(one string) bool { return one == finalizer }))
	return true
}
