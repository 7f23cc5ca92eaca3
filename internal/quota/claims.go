package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// storageClassInfix stands between a storage class and what is limited of its claims,
// as in gold.storageclass.storage.k8s.io/requests.storage.
const storageClassInfix = ".storageclass.storage.k8s.io/"

// claimKind counts persistentvolumeclaims and what they request, altogether and of
// each storage class.
type claimKind struct{}

func (claimKind) tracks(name corev1.ResourceName) bool {
	if name == "count/persistentvolumeclaims" {
		return true
	}
	if _, of, ok := strings.Cut(string(name), storageClassInfix); ok {
		name = corev1.ResourceName(of)
	}
	return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
}

func (claimKind) usage(obj any, _ time.Time) corev1.ResourceList {
	used := corev1.ResourceList{"count/persistentvolumeclaims": one(), corev1.ResourcePersistentVolumeClaims: one()}
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return used
	}
	class := storageClassOf(claim)
	if class != "" {
		used[corev1.ResourceName(class+storageClassInfix)+corev1.ResourcePersistentVolumeClaims] = one()
	}
	size, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return used
	}
	// A resize that did not succeed may have left more storage than is requested now.
	if allocated, ok := claim.Status.AllocatedResources[corev1.ResourceStorage]; ok && allocated.Cmp(size) > 0 {
		size = allocated
	}
	size = size.DeepCopy()
	size.RoundUp(0) // a quota counts whole bytes
	used[corev1.ResourceRequestsStorage] = size
	if class != "" {
		used[corev1.ResourceName(class+storageClassInfix)+corev1.ResourceRequestsStorage] = size
	}
	return used
}

func storageClassOf(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// inScope knows the scope of volume attributes classes: that of the claim's spec, the
// one that its volume has, and the one that it is about to get.
func (claimKind) inScope(obj any, scope corev1.ScopedResourceSelectorRequirement) bool {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || scope.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false
	}
	return selects(scope, attributesClasses(claim)...)
}

func attributesClasses(claim *corev1.PersistentVolumeClaim) []string {
	var classes []string
	for _, class := range []*string{claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName} {
		if class != nil && *class != "" {
			classes = append(classes, *class)
		}
	}
	if modify := claim.Status.ModifyVolumeStatus; modify != nil && modify.TargetVolumeAttributesClassName != "" {
		classes = append(classes, modify.TargetVolumeAttributesClassName)
	}
	return classes
}

func (claimKind) missing(any, []corev1.ResourceName) error { return nil }
