package storage

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func storageClassRules() define.Rules[*storagev1.StorageClass] {
	return define.Rules[*storagev1.StorageClass]{
		Default: func(c *storagev1.StorageClass) {
			define.SetDefaultPtr(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
			define.SetDefaultPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
		},
		Validate: func(c *storagev1.StorageClass) field.ErrorList {
			errs := validate.Required(field.NewPath("provisioner"), c.Provisioner)
			errs = append(errs, validate.OneOf(field.NewPath("reclaimPolicy"), define.ValueOr(c.ReclaimPolicy, ""),
				corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
			return append(errs, validate.OneOf(field.NewPath("volumeBindingMode"), define.ValueOr(c.VolumeBindingMode, ""),
				storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
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
			errs := validate.Required(validate.SpecPath.Child("attacher"), a.Spec.Attacher)
			errs = append(errs, validate.Required(validate.SpecPath.Child("nodeName"), a.Spec.NodeName)...)
			if n := len(validate.SetMembers(a.Spec.Source)); n != 1 {
				errs = append(errs, field.Required(validate.SpecPath.Child("source"), "exactly one of inlineVolumeSpec and persistentVolumeName must be specified"))
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
			for i, mode := range d.Spec.VolumeLifecycleModes {
				errs = append(errs, validate.OneOf(validate.SpecPath.Child("volumeLifecycleModes").Index(i), mode,
					storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
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
				errs = append(errs, validate.Required(at.Child("name"), d.Name)...)
				errs = append(errs, validate.Required(at.Child("nodeID"), d.NodeID)...)
				if seen.Has(d.Name) {
					errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
				}
				seen.Insert(d.Name)
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
			return validate.Required(field.NewPath("driverName"), c.DriverName)
		},
		ValidateUpdate: func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			errs := validate.Unchanged(field.NewPath("driverName"), c.DriverName, old.DriverName)
			return append(errs, validate.Unchanged(field.NewPath("parameters"), c.Parameters, old.Parameters)...)
		},
	}
}
