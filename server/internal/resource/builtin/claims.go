package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func persistentVolumeClaimRules() rules[*corev1.PersistentVolumeClaim] {
	return rules[*corev1.PersistentVolumeClaim]{
		Default: func(c *corev1.PersistentVolumeClaim) {
			defaultClaim(c)
			setDefault(&c.Status.Phase, corev1.ClaimPending)
		},
		PrepareForCreate: func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		},
		Validate: func(c *corev1.PersistentVolumeClaim) field.ErrorList {
			return validateClaimSpec(specPath, &c.Spec)
		},
		ValidateUpdate: validateClaimUpdate,
	}
}

// defaultClaim completes a claim, its phase aside: templates have none.
func defaultClaim(c *corev1.PersistentVolumeClaim) {
	setDefaultPtr(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	// The two forms of the source agree for the kinds that both know.
	if c.Spec.DataSource != nil && c.Spec.DataSourceRef == nil {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: c.Spec.DataSource.APIGroup, Kind: c.Spec.DataSource.Kind, Name: c.Spec.DataSource.Name}
	}
}

func validateAccessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "at least 1 access mode is required")}
	}
	var errs field.ErrorList
	for i, mode := range modes {
		errs = append(errs, oneOf(path.Index(i), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)...)
		if mode == corev1.ReadWriteOncePod && len(modes) > 1 {
			errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
		}
	}
	return errs
}

func validateClaimSpec(path *field.Path, spec *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	errs := validateAccessModes(path.Child("accessModes"), spec.AccessModes)
	errs = append(errs, labelSelector(path.Child("selector"), spec.Selector)...)
	at := path.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(at, ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(at, size.String(), "must be greater than zero"))
	}
	if spec.VolumeMode != nil {
		errs = append(errs, oneOf(path.Child("volumeMode"), *spec.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	}
	return errs
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
		errs = append(errs, field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	if old.Status.Phase == corev1.ClaimBound || after.Cmp(before) < 0 {
		now.Resources.Requests, was.Resources.Requests = nil, nil
	}
	if !equality.Semantic.DeepEqual(now, was) {
		errs = append(errs, field.Forbidden(specPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	return errs
}

func persistentVolumeRules() rules[*corev1.PersistentVolume] {
	return rules[*corev1.PersistentVolume]{
		Default: func(v *corev1.PersistentVolume) {
			setDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
			setDefaultPtr(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
			if v.Spec.HostPath != nil {
				setDefaultPtr(&v.Spec.HostPath.Type, corev1.HostPathUnset)
			}
			setDefault(&v.Status.Phase, corev1.VolumePending)
		},
		PrepareForCreate: func(v *corev1.PersistentVolume) {
			v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending}
		},
		Validate: validatePersistentVolume,
		ValidateUpdate: func(v, old *corev1.PersistentVolume) field.ErrorList {
			if !equality.Semantic.DeepEqual(v.Spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource) {
				return field.ErrorList{field.Forbidden(specPath.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation")}
			}
			return unchanged(specPath.Child("volumeMode"), v.Spec.VolumeMode, old.Spec.VolumeMode)
		},
	}
}

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	errs := validateAccessModes(specPath.Child("accessModes"), v.Spec.AccessModes)
	if size, ok := v.Spec.Capacity[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(specPath.Child("capacity"), ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(specPath.Child("capacity").Key(string(corev1.ResourceStorage)), size.String(), "must be greater than zero"))
	}
	errs = append(errs, oneOf(specPath.Child("persistentVolumeReclaimPolicy"), v.Spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle)...)
	switch sources := sourcesOf(v.Spec.PersistentVolumeSource); {
	case len(sources) == 0:
		errs = append(errs, field.Required(specPath, "must specify a volume type"))
	case len(sources) > 1:
		errs = append(errs, field.Forbidden(specPath.Child(sources[1]), "may not specify more than 1 volume type"))
	}
	if v.Spec.HostPath != nil {
		errs = append(errs, absentDots(specPath.Child("hostPath", "path"), v.Spec.HostPath.Path)...)
	}
	if v.Spec.Local != nil && (v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil) {
		errs = append(errs, field.Required(specPath.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
		errs = append(errs, validateNodeSelector(specPath.Child("nodeAffinity", "required"), v.Spec.NodeAffinity.Required)...)
	}
	return errs
}

// claimVolume adds the volume of a claim template, unless the template
// already names such a volume: the claim's takes its place.
func claimVolume(volumes []corev1.Volume, name string) []corev1.Volume {
	volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
	for i := range volumes {
		if volumes[i].Name == name {
			volumes[i] = volume
			return volumes
		}
	}
	return append(volumes, volume)
}
