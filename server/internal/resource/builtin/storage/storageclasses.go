package storage

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func storageClassRules() define.Rules[*storagev1.StorageClass] {
	return define.Rules[*storagev1.StorageClass]{
		Default: func(c *storagev1.StorageClass) {
			define.SetDefaultPtr(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
			define.SetDefaultPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
		},
		Validate: func(c *storagev1.StorageClass) field.ErrorList {
			errs := validateParameters(c.Parameters, true)
			if c.Provisioner != "" {
				errs = append(validateProvisioner(field.NewPath("provisioner"), c.Provisioner), errs...)
			}
			if policy := define.ValueOr(c.ReclaimPolicy, ""); policy != "" {
				errs = append(errs, validate.Supported(field.NewPath("reclaimPolicy"), policy, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
			}
			errs = append(errs, validate.Supported(field.NewPath("volumeBindingMode"), define.ValueOr(c.VolumeBindingMode, ""),
				storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
			errs = append(errs, validateTopologies(field.NewPath("allowedTopologies"), c.AllowedTopologies)...)
			// kube-apiserver has this rule in the tags of the type, and reports it last.
			return append(errs, validate.Required(field.NewPath("provisioner"), c.Provisioner)...)
		},
		ValidateUpdate: func(c, old *storagev1.StorageClass) field.ErrorList {
			errs := validate.UnchangedUnsaid(field.NewPath("provisioner"), c.Provisioner, old.Provisioner)
			errs = append(errs, validate.UnchangedUnsaid(field.NewPath("parameters"), c.Parameters, old.Parameters)...)
			errs = append(errs, validate.UnchangedUnsaid(field.NewPath("reclaimPolicy"), c.ReclaimPolicy, old.ReclaimPolicy)...)
			return append(errs, validate.UnchangedUnsaid(field.NewPath("volumeBindingMode"), c.VolumeBindingMode, old.VolumeBindingMode)...)
		},
		Warnings: func(c, _ *storagev1.StorageClass) []string {
			var warnings []string
			for i, term := range c.AllowedTopologies {
				for j, requirement := range term.MatchLabelExpressions {
					if text := podspec.NodeLabelWarning(requirement.Key); text != "" {
						at := field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key")
						warnings = append(warnings, at.String()+": "+text)
					}
				}
			}
			return warnings
		},
	}
}

func volumeAttributesClassRules() define.Rules[*storagev1.VolumeAttributesClass] {
	return define.Rules[*storagev1.VolumeAttributesClass]{
		Validate: validateAttributesClass,
		ValidateUnchanged: func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			var errs field.ErrorList
			if c.DriverName != old.DriverName {
				errs = append(errs, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
			}
			if !maps.Equal(c.Parameters, old.Parameters) {
				errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
			}
			return errs
		},
	}
}

func validateAttributesClass(c *storagev1.VolumeAttributesClass) field.ErrorList {
	return append(validateProvisioner(field.NewPath("driverName"), c.DriverName), validateParameters(c.Parameters, false)...)
}
