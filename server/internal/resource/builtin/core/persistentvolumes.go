package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func persistentVolumeRules() define.Rules[*corev1.PersistentVolume] {
	return define.Rules[*corev1.PersistentVolume]{
		Default: func(v *corev1.PersistentVolume) {
			define.SetDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
			define.SetDefaultPtr(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
			podspec.DefaultPersistentSource(&v.Spec.PersistentVolumeSource)
			define.SetDefault(&v.Status.Phase, corev1.VolumePending)
			podspec.RoundAmounts(v.Spec.Capacity)
		},
		PrepareForCreate: func(v *corev1.PersistentVolume) {
			// The time of the phase is that of the object, whose creation it comes with.
			created := v.CreationTimestamp
			v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending, LastPhaseTransitionTime: &created}
		},
		PrepareForStatusUpdate: setPhaseTransition,
		Validate:               validatePersistentVolume,
		ValidateUpdate:         validatePersistentVolumeUpdate,
		Warnings:               persistentVolumeWarnings,
	}
}

// setPhaseTransition sets the time at which the phase changed, unless the writer did (KEP-3762).
func setPhaseTransition(v, old *corev1.PersistentVolume) {
	at, was := &v.Status.LastPhaseTransitionTime, old.Status.LastPhaseTransitionTime
	switch changed := v.Status.Phase != old.Status.Phase; {
	case !changed && *at == nil:
		*at = was
	case changed && (*at == nil || (*at).Equal(was)):
		now := metav1.Now()
		*at = &now
	}
}

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	spec, at := &v.Spec, validate.SpecPath
	var errs field.ErrorList
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), ""))
	}
	errs = append(errs, podspec.ValidateAccessModes(at.Child("accessModes"), spec.AccessModes)...)
	errs = append(errs, validateCapacity(at.Child("capacity"), spec.Capacity)...)
	errs = append(errs, validate.Supported(at.Child("persistentVolumeReclaimPolicy"), spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle)...)
	if affinity, at := spec.NodeAffinity, at.Child("nodeAffinity", "required"); affinity != nil {
		if affinity.Required == nil {
			errs = append(errs, field.Required(at, "must specify required node constraints"))
		} else {
			errs = append(errs, podspec.ValidateNodeSelector(at, affinity.Required)...)
		}
	}
	errs = append(errs, podspec.ValidatePersistentSource(at, v)...)
	errs = append(errs, podspec.ValidateRecycledHost(at, spec)...)
	errs = append(errs, podspec.ClassName(at.Child("storageClassName"), spec.StorageClassName)...)
	errs = append(errs, podspec.ValidateVolumeMode(at.Child("volumeMode"), spec.VolumeMode)...)
	if name, at := spec.VolumeAttributesClassName, at.Child("volumeAttributesClassName"); name != nil {
		if *name == "" {
			errs = append(errs, field.Required(at, "an empty string is disallowed"))
		}
		errs = append(errs, podspec.ClassName(at, *name)...)
		if spec.CSI == nil {
			errs = append(errs, field.Required(validate.SpecPath.Child("csi"), "has to be specified when using volumeAttributesClassName"))
		}
	}
	if _, annotated := v.Annotations[corev1.MountOptionAnnotation]; annotated && !podspec.TakesMountOptions(&spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata").Child("annotations", corev1.MountOptionAnnotation), "may not specify mount options for this volume type"))
	}
	return errs
}

// validateCapacity: a volume has a size and nothing else.
func validateCapacity(at *field.Path, capacity corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	if len(capacity) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	if _, ok := capacity[corev1.ResourceStorage]; !ok || len(capacity) > 1 {
		errs = append(errs, field.NotSupported(at, capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range validate.SortedNames(capacity) {
		amount, at := capacity[name], at.Key(string(name))
		if amount.Value() < 0 {
			errs = append(errs, field.Invalid(at, amount.Value(), "must be a valid resource quantity"))
		}
		errs = append(errs, validate.PositiveQuantity(at, amount)...)
	}
	return errs
}

// validatePersistentVolumeUpdate: what a volume is made of stays. Some paths are without the spec:
// they are kube-apiserver's.
func validatePersistentVolumeUpdate(v, old *corev1.PersistentVolume) field.ErrorList {
	var errs field.ErrorList
	now := v.Spec.PersistentVolumeSource
	if was := old.Spec.CSI; now.CSI != nil && was != nil && was.ControllerExpandSecretRef == nil {
		csi := *now.CSI
		csi.ControllerExpandSecretRef = nil // it may be added
		now.CSI = &csi
	}
	if !equality.Semantic.DeepEqual(now, old.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))
	}
	errs = append(errs, validate.Unchanged(field.NewPath("volumeMode"), v.Spec.VolumeMode, old.Spec.VolumeMode)...)
	if old.Spec.NodeAffinity != nil && !podspec.SameNodeAffinity(v.Spec.NodeAffinity, old.Spec.NodeAffinity) {
		errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), v.Spec.NodeAffinity, validate.Immutable+", except for updating from beta label to GA"))
	}
	if old.Spec.VolumeAttributesClassName != nil && v.Spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden"))
	}
	return errs
}

const useStorageClassName = `deprecated since v1.8; use "storageClassName" attribute instead`

// annotationWarning warns of an annotation in the place of which there is a field.
func annotationWarning(meta *metav1.ObjectMeta, key, instead string) []string {
	if _, ok := meta.Annotations[key]; !ok {
		return nil
	}
	return []string{field.NewPath("metadata", "annotations").Key(key).String() + ": " + instead}
}

func persistentVolumeWarnings(v, _ *corev1.PersistentVolume) []string {
	warnings := annotationWarning(&v.ObjectMeta, corev1.BetaStorageClassAnnotation, useStorageClassName)
	warnings = append(warnings, annotationWarning(&v.ObjectMeta, corev1.MountOptionAnnotation, `deprecated since v1.31; use "mountOptions" attribute instead`)...)
	if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		warnings = append(warnings, validate.SpecPath.Child("persistentVolumeReclaimPolicy").String()+
			": The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	if affinity := v.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		at := validate.SpecPath.Child("nodeAffinity", "required", "nodeSelectorTerms")
		for i := range affinity.Required.NodeSelectorTerms {
			warnings = append(warnings, podspec.NodeTermWarnings(at.Index(i), &affinity.Required.NodeSelectorTerms[i], false)...)
		}
	}
	return append(warnings, podspec.PersistentSourceWarnings(validate.SpecPath, &v.Spec.PersistentVolumeSource)...)
}
