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
			podspec.DefaultClaim(c)
			define.SetDefault(&c.Status.Phase, corev1.ClaimPending)
		},
		PrepareForCreate: func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		},
		Validate: func(c *corev1.PersistentVolumeClaim) field.ErrorList {
			return podspec.ValidateClaimSpec(validate.SpecPath, &c.Spec)
		},
		ValidateUpdate: validateClaimUpdate,
	}
}

// validateClaimUpdate: a claim may be bound once and may grow; the class may
// be filled in while the claim is unbound.
func validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	was := old.Spec.DeepCopy()
	now := c.Spec.DeepCopy()
	if was.VolumeName == "" {
		now.VolumeName = ""
	}
	if was.StorageClassName == nil {
		now.StorageClassName = nil
	}
	now.VolumeAttributesClassName, was.VolumeAttributesClassName = nil, nil
	before, after := was.Resources.Requests[corev1.ResourceStorage], now.Resources.Requests[corev1.ResourceStorage]
	var errs field.ErrorList
	if after.Cmp(before) < 0 {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	if old.Status.Phase == corev1.ClaimBound || after.Cmp(before) < 0 {
		now.Resources.Requests, was.Resources.Requests = nil, nil
	}
	if !equality.Semantic.DeepEqual(now, was) {
		errs = append(errs, field.Forbidden(validate.SpecPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	return errs
}

func persistentVolumeRules() define.Rules[*corev1.PersistentVolume] {
	return define.Rules[*corev1.PersistentVolume]{
		Default: func(v *corev1.PersistentVolume) {
			define.SetDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
			define.SetDefaultPtr(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
			if v.Spec.HostPath != nil {
				define.SetDefaultPtr(&v.Spec.HostPath.Type, corev1.HostPathUnset)
			}
			define.SetDefault(&v.Status.Phase, corev1.VolumePending)
		},
		PrepareForCreate: func(v *corev1.PersistentVolume) {
			v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending}
		},
		Validate: validatePersistentVolume,
		ValidateUpdate: func(v, old *corev1.PersistentVolume) field.ErrorList {
			if !equality.Semantic.DeepEqual(v.Spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource) {
				return field.ErrorList{field.Forbidden(validate.SpecPath.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation")}
			}
			return validate.Unchanged(validate.SpecPath.Child("volumeMode"), v.Spec.VolumeMode, old.Spec.VolumeMode)
		},
	}
}

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	errs := podspec.ValidateAccessModes(validate.SpecPath.Child("accessModes"), v.Spec.AccessModes)
	if size, ok := v.Spec.Capacity[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(validate.SpecPath.Child("capacity"), ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("capacity").Key(string(corev1.ResourceStorage)), size.String(), "must be greater than zero"))
	}
	errs = append(errs, validate.OneOf(validate.SpecPath.Child("persistentVolumeReclaimPolicy"), v.Spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle)...)
	switch sources := validate.SetMembers(v.Spec.PersistentVolumeSource); {
	case len(sources) == 0:
		errs = append(errs, field.Required(validate.SpecPath, "must specify a volume type"))
	case len(sources) > 1:
		errs = append(errs, field.Forbidden(validate.SpecPath.Child(sources[1]), "may not specify more than 1 volume type"))
	}
	if v.Spec.HostPath != nil {
		errs = append(errs, validate.NoParentDir(validate.SpecPath.Child("hostPath", "path"), v.Spec.HostPath.Path)...)
	}
	if v.Spec.Local != nil && (v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil) {
		errs = append(errs, field.Required(validate.SpecPath.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
		errs = append(errs, podspec.ValidateNodeSelector(validate.SpecPath.Child("nodeAffinity", "required"), v.Spec.NodeAffinity.Required)...)
	}
	return errs
}
