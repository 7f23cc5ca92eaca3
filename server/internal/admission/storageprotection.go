package admission

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// storageFinalizers are the finalizers of new objects that pods, claims or volumes may use. A
// controller takes each of them away when the object is being deleted and nothing uses it
// any more (components/controllermanager/internal/storageprotection).
var storageFinalizers = map[schema.GroupResource]string{
	{Resource: "persistentvolumeclaims"}:                           "kubernetes.io/pvc-protection",
	{Resource: "persistentvolumes"}:                                "kubernetes.io/pv-protection",
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}: "kubernetes.io/vac-protection",
}

// protectStorage adds the finalizer of a new claim, volume or attributes class.
func protectStorage(_ context.Context, q *registry.Request) error {
	if q.Operation != registry.Create || q.Subresource != "" || q.Object == nil {
		return nil
	}
	finalizer, ok := storageFinalizers[q.Resource.GroupResource()]
	if !ok {
		return nil
	}
	if finalizers := q.Object.GetFinalizers(); !slices.Contains(finalizers, finalizer) {
		q.Object.SetFinalizers(append(finalizers, finalizer))
	}
	return nil
}
