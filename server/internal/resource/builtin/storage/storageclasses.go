package storage

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
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
			errs := validateProvisioner(field.NewPath("provisioner"), c.Provisioner)
			errs = append(errs, validateParameters(c.Parameters, true)...)
			if policy := define.ValueOr(c.ReclaimPolicy, ""); policy != "" {
				errs = append(errs, validate.Supported(field.NewPath("reclaimPolicy"), policy, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
			}
			errs = append(errs, validate.Supported(field.NewPath("volumeBindingMode"), define.ValueOr(c.VolumeBindingMode, ""),
				storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
			return append(errs, validateTopologies(field.NewPath("allowedTopologies"), c.AllowedTopologies)...)
		},
		ValidateUpdate: func(c, old *storagev1.StorageClass) field.ErrorList {
			errs := validate.Unchanged(field.NewPath("parameters"), c.Parameters, old.Parameters)
			errs = append(errs, validate.Unchanged(field.NewPath("provisioner"), c.Provisioner, old.Provisioner)...)
			errs = append(errs, validate.Unchanged(field.NewPath("reclaimPolicy"), c.ReclaimPolicy, old.ReclaimPolicy)...)
			return append(errs, validate.Unchanged(field.NewPath("volumeBindingMode"), c.VolumeBindingMode, old.VolumeBindingMode)...)
		},
	}
}

func volumeAttachmentRules() define.Rules[*storagev1.VolumeAttachment] {
	return define.Rules[*storagev1.VolumeAttachment]{
		Validate: func(a *storagev1.VolumeAttachment) field.ErrorList {
			errs := podspec.CSIDriverName(validate.SpecPath.Child("attacher"), a.Spec.Attacher)
			errs = append(errs, validateAttachedSource(validate.SpecPath.Child("source"), a.Spec.Source)...)
			errs = append(errs, validate.Invalid(validate.SpecPath.Child("nodeName"), a.Spec.NodeName, validation.IsDNS1123Subdomain(a.Spec.NodeName))...)
			errs = append(errs, validateAttachmentStatus(field.NewPath("status"), &a.Status)...)
			if name := a.Spec.Source.PersistentVolumeName; name != nil {
				errs = append(errs, validate.Invalid(field.NewPath("spec.source.persistentVolumeName"), *name, validation.IsDNS1123Subdomain(*name))...)
			}
			return errs
		},
		ValidateUpdate: func(a, old *storagev1.VolumeAttachment) field.ErrorList {
			return validate.Unchanged(validate.SpecPath, a.Spec, old.Spec)
		},
	}
}

func csiDriverRules() define.Rules[*storagev1.CSIDriver] {
	return define.Rules[*storagev1.CSIDriver]{
		Default: func(d *storagev1.CSIDriver) {
			define.SetDefaultPtr(&d.Spec.AttachRequired, true)
			define.SetDefaultPtr(&d.Spec.PodInfoOnMount, false)
			define.SetDefaultPtr(&d.Spec.StorageCapacity, false)
			define.SetDefaultPtr(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
			define.SetDefaultPtr(&d.Spec.RequiresRepublish, false)
			define.SetDefaultPtr(&d.Spec.SELinuxMount, false)
			if len(d.Spec.VolumeLifecycleModes) == 0 {
				d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
			}
		},
		Validate: func(d *storagev1.CSIDriver) field.ErrorList {
			errs := validate.OneOf(validate.SpecPath.Child("fsGroupPolicy"), define.ValueOr(d.Spec.FSGroupPolicy, ""),
				storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy)
			errs = append(errs, validateTokenRequests(validate.SpecPath.Child("tokenRequests"), d.Spec.TokenRequests)...)
			for i, mode := range d.Spec.VolumeLifecycleModes {
				errs = append(errs, validate.OneOf(validate.SpecPath.Child("volumeLifecycleModes").Index(i), mode,
					storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
			}
			if period := d.Spec.NodeAllocatableUpdatePeriodSeconds; period != nil && *period < minUpdatePeriodSeconds {
				errs = append(errs, field.Invalid(validate.SpecPath.Child("nodeAllocatableUpdatePeriodSeconds"), *period, "must be greater than or equal to 10 seconds"))
			}
			if d.Spec.ServiceAccountTokenInSecrets != nil && len(d.Spec.TokenRequests) == 0 {
				errs = append(errs, field.Invalid(validate.SpecPath.Child("serviceAccountTokenInSecrets"), *d.Spec.ServiceAccountTokenInSecrets,
					"serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
			}
			return errs
		},
		ValidateUpdate: func(d, old *storagev1.CSIDriver) field.ErrorList {
			errs := validate.Unchanged(validate.SpecPath.Child("attachRequired"), d.Spec.AttachRequired, old.Spec.AttachRequired)
			return append(errs, validate.Unchanged(validate.SpecPath.Child("volumeLifecycleModes"), d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)...)
		},
	}
}

func csiNodeRules() define.Rules[*storagev1.CSINode] {
	return define.Rules[*storagev1.CSINode]{
		Validate: func(n *storagev1.CSINode) field.ErrorList {
			var errs field.ErrorList
			seen := sets.New[string]()
			for i, d := range n.Spec.Drivers {
				at := validate.SpecPath.Child("drivers").Index(i)
				errs = append(errs, podspec.CSIDriverName(at.Child("name"), d.Name)...)
				errs = append(errs, validateNodeDriver(at, d)...)
				if seen.Has(d.Name) {
					errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
				}
				seen.Insert(d.Name)
				errs = append(errs, validateTopologyKeys(at, d.TopologyKeys)...)
			}
			return errs
		},
	}
}

func csiStorageCapacityRules() define.Rules[*storagev1.CSIStorageCapacity] {
	return define.Rules[*storagev1.CSIStorageCapacity]{
		Validate: func(c *storagev1.CSIStorageCapacity) field.ErrorList {
			errs := validate.Required(field.NewPath("storageClassName"), c.StorageClassName)
			errs = append(errs, validate.LabelSelector(field.NewPath("nodeTopology"), c.NodeTopology)...)
			if c.Capacity != nil {
				errs = append(errs, validate.NotNegativeQuantity(field.NewPath("capacity"), *c.Capacity)...)
			}
			return errs
		},
		ValidateUpdate: func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			errs := validate.Unchanged(field.NewPath("nodeTopology"), c.NodeTopology, old.NodeTopology)
			return append(errs, validate.Unchanged(field.NewPath("storageClassName"), c.StorageClassName, old.StorageClassName)...)
		},
	}
}

func volumeAttributesClassRules() define.Rules[*storagev1.VolumeAttributesClass] {
	return define.Rules[*storagev1.VolumeAttributesClass]{
		Validate: func(c *storagev1.VolumeAttributesClass) field.ErrorList {
			return append(validateProvisioner(field.NewPath("driverName"), c.DriverName), validateParameters(c.Parameters, false)...)
		},
		ValidateUpdate: func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			errs := validate.Unchanged(field.NewPath("driverName"), c.DriverName, old.DriverName)
			return append(errs, validate.Unchanged(field.NewPath("parameters"), c.Parameters, old.Parameters)...)
		},
	}
}
