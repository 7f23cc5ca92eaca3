package builtin

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func storageClassRules() rules[*storagev1.StorageClass] {
	return rules[*storagev1.StorageClass]{
		Default: func(c *storagev1.StorageClass) {
			setDefaultPtr(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
			setDefaultPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
		},
		Validate: func(c *storagev1.StorageClass) field.ErrorList {
			errs := required(field.NewPath("provisioner"), c.Provisioner)
			errs = append(errs, oneOf(field.NewPath("reclaimPolicy"), valueOr(c.ReclaimPolicy, ""),
				corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
			return append(errs, oneOf(field.NewPath("volumeBindingMode"), valueOr(c.VolumeBindingMode, ""),
				storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
		},
		ValidateUpdate: func(c, old *storagev1.StorageClass) field.ErrorList {
			errs := unchanged(field.NewPath("parameters"), c.Parameters, old.Parameters)
			errs = append(errs, unchanged(field.NewPath("provisioner"), c.Provisioner, old.Provisioner)...)
			errs = append(errs, unchanged(field.NewPath("reclaimPolicy"), c.ReclaimPolicy, old.ReclaimPolicy)...)
			return append(errs, unchanged(field.NewPath("volumeBindingMode"), c.VolumeBindingMode, old.VolumeBindingMode)...)
		},
	}
}

func volumeAttachmentRules() rules[*storagev1.VolumeAttachment] {
	return rules[*storagev1.VolumeAttachment]{
		Validate: func(a *storagev1.VolumeAttachment) field.ErrorList {
			errs := required(specPath.Child("attacher"), a.Spec.Attacher)
			errs = append(errs, required(specPath.Child("nodeName"), a.Spec.NodeName)...)
			if n := len(sourcesOf(a.Spec.Source)); n != 1 {
				errs = append(errs, field.Required(specPath.Child("source"), "exactly one of inlineVolumeSpec and persistentVolumeName must be specified"))
			}
			return errs
		},
		ValidateUpdate: func(a, old *storagev1.VolumeAttachment) field.ErrorList {
			return unchanged(specPath, a.Spec, old.Spec)
		},
	}
}

func csiDriverRules() rules[*storagev1.CSIDriver] {
	return rules[*storagev1.CSIDriver]{
		Default: func(d *storagev1.CSIDriver) {
			setDefaultPtr(&d.Spec.AttachRequired, true)
			setDefaultPtr(&d.Spec.PodInfoOnMount, false)
			setDefaultPtr(&d.Spec.StorageCapacity, false)
			setDefaultPtr(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
			setDefaultPtr(&d.Spec.RequiresRepublish, false)
			setDefaultPtr(&d.Spec.SELinuxMount, false)
			if len(d.Spec.VolumeLifecycleModes) == 0 {
				d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
			}
		},
		Validate: func(d *storagev1.CSIDriver) field.ErrorList {
			errs := oneOf(specPath.Child("fsGroupPolicy"), valueOr(d.Spec.FSGroupPolicy, ""),
				storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy)
			for i, mode := range d.Spec.VolumeLifecycleModes {
				errs = append(errs, oneOf(specPath.Child("volumeLifecycleModes").Index(i), mode,
					storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
			}
			return errs
		},
		ValidateUpdate: func(d, old *storagev1.CSIDriver) field.ErrorList {
			errs := unchanged(specPath.Child("attachRequired"), d.Spec.AttachRequired, old.Spec.AttachRequired)
			return append(errs, unchanged(specPath.Child("volumeLifecycleModes"), d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)...)
		},
	}
}

func csiNodeRules() rules[*storagev1.CSINode] {
	return rules[*storagev1.CSINode]{
		Validate: func(n *storagev1.CSINode) field.ErrorList {
			var errs field.ErrorList
			seen := sets.New[string]()
			for i, d := range n.Spec.Drivers {
				at := specPath.Child("drivers").Index(i)
				errs = append(errs, required(at.Child("name"), d.Name)...)
				errs = append(errs, required(at.Child("nodeID"), d.NodeID)...)
				if seen.Has(d.Name) {
					errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
				}
				seen.Insert(d.Name)
			}
			return errs
		},
	}
}

func csiStorageCapacityRules() rules[*storagev1.CSIStorageCapacity] {
	return rules[*storagev1.CSIStorageCapacity]{
		Validate: func(c *storagev1.CSIStorageCapacity) field.ErrorList {
			errs := required(field.NewPath("storageClassName"), c.StorageClassName)
			errs = append(errs, labelSelector(field.NewPath("nodeTopology"), c.NodeTopology)...)
			if c.Capacity != nil {
				errs = append(errs, notNegativeQuantity(field.NewPath("capacity"), *c.Capacity)...)
			}
			return errs
		},
		ValidateUpdate: func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			errs := unchanged(field.NewPath("nodeTopology"), c.NodeTopology, old.NodeTopology)
			return append(errs, unchanged(field.NewPath("storageClassName"), c.StorageClassName, old.StorageClassName)...)
		},
	}
}

func volumeAttributesClassRules() rules[*storagev1.VolumeAttributesClass] {
	return rules[*storagev1.VolumeAttributesClass]{
		Validate: func(c *storagev1.VolumeAttributesClass) field.ErrorList {
			return required(field.NewPath("driverName"), c.DriverName)
		},
		ValidateUpdate: func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			errs := unchanged(field.NewPath("driverName"), c.DriverName, old.DriverName)
			return append(errs, unchanged(field.NewPath("parameters"), c.Parameters, old.Parameters)...)
		},
	}
}
