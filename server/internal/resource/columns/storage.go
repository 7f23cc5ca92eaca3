package columns

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// The annotations that mark the default class.
const (
	defaultStorageClass          = "storageclass.kubernetes.io/is-default-class"
	defaultStorageClassBeta      = "storageclass.beta.kubernetes.io/is-default-class"
	defaultVolumeAttributesClass = "volumeattributesclass.alpha.kubernetes.io/is-default-class"
)

func storageGroup(all layouts) {
	gv := storagev1.SchemeGroupVersion
	all.add(gv, "CSIDriver", csiDrivers())
	all.add(gv, "CSINode", csiNodes())
	all.add(gv, "CSIStorageCapacity", csiStorageCapacities())
	all.add(gv, "StorageClass", storageClasses())
	all.add(gv, "VolumeAttachment", volumeAttachments())
	all.add(gv, "VolumeAttributesClass", volumeAttributesClasses())
}

func storageClasses() layout {
	return table(func(c *storagev1.StorageClass, now time.Time) []any {
		return []any{
			defaultMark(c.Name, c.Annotations, defaultStorageClass, defaultStorageClassBeta), c.Provisioner,
			string(value(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)),
			string(value(c.VolumeBindingMode, storagev1.VolumeBindingImmediate)),
			value(c.AllowVolumeExpansion, false), since(c.CreationTimestamp, now),
		}
	},
		nameColumn,
		text("Provisioner", "Who makes volumes of the class."),
		text("ReclaimPolicy", "What happens to a volume when its claim goes."),
		text("VolumeBindingMode", "When a claim gets its volume."),
		text("AllowVolumeExpansion", "Whether volumes can grow."),
		ageColumn,
	)
}

func volumeAttributesClasses() layout {
	return table(func(c *storagev1.VolumeAttributesClass, now time.Time) []any {
		return []any{defaultMark(c.Name, c.Annotations, defaultVolumeAttributesClass), c.DriverName, since(c.CreationTimestamp, now)}
	}, nameColumn, text("DriverName", "The CSI driver of the class."), ageColumn)
}

func defaultMark(name string, annotations map[string]string, marks ...string) string {
	for _, mark := range marks {
		if annotations[mark] == "true" {
			return name + " (default)"
		}
	}
	return name
}

func volumeAttachments() layout {
	return table(func(a *storagev1.VolumeAttachment, now time.Time) []any {
		return []any{
			a.Name, a.Spec.Attacher, value(a.Spec.Source.PersistentVolumeName, ""), a.Spec.NodeName, a.Status.Attached,
			since(a.CreationTimestamp, now),
		}
	},
		nameColumn,
		text("Attacher", "The driver that attaches the volume."),
		text("PV", "The persistent volume."),
		text("Node", "The node that the volume is attached to."),
		boolean("Attached", "Whether the volume is attached."),
		ageColumn,
	)
}

func csiNodes() layout {
	return table(func(n *storagev1.CSINode, now time.Time) []any {
		return []any{n.Name, int64(len(n.Spec.Drivers)), since(n.CreationTimestamp, now)}
	}, nameColumn, integer("Drivers", "The number of CSI drivers on the node."), ageColumn)
}

func csiDrivers() layout {
	return table(func(d *storagev1.CSIDriver, now time.Time) []any {
		modes := make([]string, len(d.Spec.VolumeLifecycleModes))
		for i, mode := range d.Spec.VolumeLifecycleModes {
			modes[i] = string(mode)
		}
		tokens := unset
		if d.Spec.TokenRequests != nil {
			audiences := make([]string, len(d.Spec.TokenRequests))
			for i, request := range d.Spec.TokenRequests {
				audiences[i] = request.Audience
			}
			tokens = strings.Join(audiences, ",")
		}
		return []any{
			d.Name, value(d.Spec.AttachRequired, true), value(d.Spec.PodInfoOnMount, false),
			value(d.Spec.StorageCapacity, false), tokens, value(d.Spec.RequiresRepublish, false),
			or(strings.Join(modes, ","), none), since(d.CreationTimestamp, now),
		}
	},
		nameColumn,
		boolean("AttachRequired", "Whether volumes are attached to a node before they are mounted."),
		boolean("PodInfoOnMount", "Whether the driver is told which pod mounts."),
		boolean("StorageCapacity", "Whether the scheduler looks at the driver's free capacity."),
		text("TokenRequests", "The audiences of the tokens that the driver gets for a pod."),
		boolean("RequiresRepublish", "Whether the driver is called again for mounted volumes."),
		text("Modes", "How long the driver's volumes live."),
		ageColumn,
	)
}

func csiStorageCapacities() layout {
	return table(func(c *storagev1.CSIStorageCapacity, _ time.Time) []any {
		capacity := unset
		if c.Capacity != nil {
			capacity = c.Capacity.String()
		}
		return []any{c.Name, c.StorageClassName, capacity}
	},
		nameColumn,
		text("StorageClassName", "The storage class whose capacity this is."),
		text("Capacity", "The space that is free."),
	)
}
