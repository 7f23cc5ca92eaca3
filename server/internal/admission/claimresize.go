package admission

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// claimResizes refuses claims that grow although their storage class does not allow it.
type claimResizes struct{ set *registry.Set }

func (c claimResizes) check(ctx context.Context, q *registry.Request) error {
	claim, ok := q.Object.(*corev1.PersistentVolumeClaim)
	old, replaces := q.Old.(*corev1.PersistentVolumeClaim)
	if !ok || !replaces || q.Operation != registry.Update || q.Subresource != "" {
		return nil
	}
	before, after := old.Spec.Resources.Requests[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if after.Cmp(before) <= 0 {
		return nil
	}
	if old.Status.Phase != corev1.ClaimBound {
		return q.Forbidden(errors.New("Only bound persistent volume claims can be expanded")) //nolint:revive,staticcheck // the text of Kubernetes
	}
	if !c.allows(ctx, classOf(claim), classOf(old)) {
		return q.Forbidden(errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
	}
	return nil
}

func classOf(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

func (c claimResizes) allows(ctx context.Context, class, old string) bool {
	if class == "" || class != old {
		return false
	}
	classes, ok := c.set.Lookup(storagev1.GroupName, "v1", "storageclasses")
	if !ok {
		return false
	}
	found, err := registry.GetAs[*storagev1.StorageClass](ctx, classes, "", class)
	return err == nil && found.AllowVolumeExpansion != nil && *found.AllowVolumeExpansion
}
