package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// The annotations that make a class the default: the current and the beta one.
const (
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
)

var claimsResource = schema.GroupResource{Resource: "persistentvolumeclaims"}

// storageClasses sets the default class in claims that name none.
type storageClasses struct{ set *registry.Set }

func (s storageClasses) admit(ctx context.Context, q *registry.Request) error {
	claim, ok := q.Object.(*corev1.PersistentVolumeClaim)
	if !ok || q.Operation != registry.Create || q.Resource.GroupResource() != claimsResource || claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, named := claim.Annotations[corev1.BetaStorageClassAnnotation]; named {
		return nil
	}
	classes, ok := s.set.Lookup(storagev1.GroupName, "v1", "storageclasses")
	if !ok {
		return nil
	}
	snapshot, err := classes.Snapshot(ctx)
	if err != nil {
		return err
	}
	var newest *storagev1.StorageClass
	for o := range snapshot.Range("", "") {
		class, err := registry.DecodeAs[*storagev1.StorageClass](ctx, classes, o)
		if err != nil {
			return err
		}
		isDefault := class.Annotations[defaultClass] == "true" || class.Annotations[betaDefaultClass] == "true"
		if isDefault && (newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = class
		}
	}
	if newest != nil {
		claim.Spec.StorageClassName = &newest.Name
	}
	return nil
}
