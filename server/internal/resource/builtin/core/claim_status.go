package core

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validateClaimStatus checks how much a claim has, and how far it has grown (KEP-1790).
func validateClaimStatus(s *corev1.PersistentVolumeClaimStatus) field.ErrorList {
	path := field.NewPath("status")
	var errs field.ErrorList
	for _, name := range validate.SortedNames(s.Capacity) {
		errs = append(errs, validateClaimAmount(path.Child("capacity").Key(string(name)), s.Capacity[name])...)
	}
	at := path.Child("allocatedResourceStatuses")
	for _, name := range slices.Sorted(maps.Keys(s.AllocatedResourceStatuses)) {
		errs = append(errs, validateClaimResource(at, name)...)
		if !slices.Contains(resizes, s.AllocatedResourceStatuses[name]) { // kube-apiserver says whose status it is
			errs = append(errs, field.NotSupported(at, name, slices.Sorted(slices.Values(resizes))))
		}
	}
	at = path.Child("allocatedResources")
	for _, name := range validate.SortedNames(s.AllocatedResources) {
		if wrong := validateClaimResource(at, name); len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		errs = append(errs, validateClaimAmount(at.Key(string(name)), s.AllocatedResources[name])...)
	}
	return errs
}

var resizes = []corev1.ClaimResourceStatus{
	corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible,
}

// validateClaimResource checks the name of a resource: storage is the only one of Kubernetes' own.
func validateClaimResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	errs := validate.Invalid(path, name, validation.IsQualifiedName(string(name)))
	if len(errs) == 0 && podspec.IsNative(name) && name != corev1.ResourceStorage {
		errs = append(errs, field.NotSupported(path, name, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	return errs
}

func validateClaimAmount(path *field.Path, amount apiresource.Quantity) field.ErrorList {
	if amount.Value() < 0 {
		return field.ErrorList{field.Invalid(path, amount.Value(), "must be a valid resource quantity")}
	}
	return nil
}
