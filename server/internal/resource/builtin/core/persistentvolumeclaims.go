package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func persistentVolumeClaimRules() define.Rules[*corev1.PersistentVolumeClaim] {
	return define.Rules[*corev1.PersistentVolumeClaim]{
		Default: func(c *corev1.PersistentVolumeClaim) {
			define.SetDefaultPtr(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
			define.SetDefault(&c.Status.Phase, corev1.ClaimPending)
			podspec.RoundClaim(&c.Spec)
			podspec.RoundClaimStatus(&c.Status)
		},
		PrepareForCreate: func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			podspec.PrepareDataSources(&c.Spec, nil)
		},
		PrepareForUpdate: func(c, old *corev1.PersistentVolumeClaim) { podspec.PrepareDataSources(&c.Spec, &old.Spec) },
		ValidateCreate: func(c *corev1.PersistentVolumeClaim) field.ErrorList {
			return podspec.ValidateClaimSpec(validate.SpecPath, &c.Spec)
		},
		ValidateUpdate: validateClaimUpdate,
		ValidateStatus: func(c, _ *corev1.PersistentVolumeClaim) field.ErrorList { return validateClaimStatus(&c.Status) },
		Warnings: func(c, _ *corev1.PersistentVolumeClaim) []string {
			warnings := annotationWarning(&c.ObjectMeta, corev1.BetaStorageClassAnnotation, useStorageClassName)
			return append(warnings, podspec.ClaimWarnings(validate.SpecPath, &c.Spec)...)
		},
	}
}

// validateClaimUpdate: a claim may be bound once, and a bound one may grow; the class may be filled
// in while there is none.
func validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := podspec.ValidateClaimSpecUpdate(validate.SpecPath, &c.Spec, &old.Spec)
	errs = append(errs, validateClass(c, old)...)
	now, was := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	podspec.PrepareDataSources(was, was)
	podspec.RoundClaim(was)
	if was.VolumeName == "" {
		now.VolumeName = ""
	}
	if mayHaveClass(c, old) {
		now.StorageClassName = nil
	}
	if c.Status.Phase == corev1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[corev1.ResourceStorage] = was.Resources.Requests[corev1.ResourceStorage]
		}
		now.VolumeAttributesClassName = was.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(now, was) {
		errs = append(errs, field.Forbidden(validate.SpecPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	size, before := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(before) < 0 && size.Cmp(old.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		// A claim that could not grow may ask for less again (KEP-1790).
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	errs = append(errs, validate.Unchanged(field.NewPath("volumeMode"), c.Spec.VolumeMode, old.Spec.VolumeMode)...)
	if old.Status.CurrentVolumeAttributesClassName != nil {
		at := validate.SpecPath.Child("volumeAttributesClassName")
		switch name := c.Spec.VolumeAttributesClassName; {
		case name == nil && old.Spec.VolumeAttributesClassName != nil:
			errs = append(errs, field.Forbidden(at, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"))
		case name != nil && *name == "" && define.ValueOr(old.Spec.VolumeAttributesClassName, "-") != "":
			errs = append(errs, field.Forbidden(at, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"))
		}
	}
	return errs
}

// mayHaveClass reports whether a claim that had no class may have one now. If an old annotation
// names one, it must be that one.
func mayHaveClass(c, old *corev1.PersistentVolumeClaim) bool {
	named, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]
	return old.Spec.StorageClassName == nil && c.Spec.StorageClassName != nil && (!annotated || *c.Spec.StorageClassName == named)
}

// validateClass: the annotation that named the class once may go, if the field names it now.
func validateClass(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	before, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]
	now, kept := c.Annotations[corev1.BetaStorageClassAnnotation]
	if annotated && mayHaveClass(c, old) && (!kept || now == before) || now == before {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations", corev1.BetaStorageClassAnnotation), now, validate.Immutable)}
}
