package storage

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// The annotations that mark the default class.
const (
	defaultStorageClass          = "storageclass.kubernetes.io/is-default-class"
	defaultStorageClassBeta      = "storageclass.beta.kubernetes.io/is-default-class"
	defaultVolumeAttributesClass = "volumeattributesclass.alpha.kubernetes.io/is-default-class"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := storagev1.SchemeGroupVersion
	all.Add(gv, "CSIDriver", csiDriverLayout())
	all.Add(gv, "CSINode", csiNodeLayout())
	all.Add(gv, "CSIStorageCapacity", columns.NameAndCreation())
	all.Add(gv, "StorageClass", storageClassLayout())
	all.Add(gv, "VolumeAttachment", volumeAttachmentLayout())
	all.Add(gv, "VolumeAttributesClass", volumeAttributesClassLayout())
}

func storageClassLayout() columns.Layout {
	class := storagev1.StorageClass{}.SwaggerDoc()
	return columns.Table(func(c *storagev1.StorageClass, now time.Time) []any {
		return []any{
			defaultMark(c.Name, c.Annotations, defaultStorageClass, defaultStorageClassBeta), c.Provisioner,
			string(columns.ValueOr(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)),
			string(columns.ValueOr(c.VolumeBindingMode, storagev1.VolumeBindingImmediate)),
			columns.ValueOr(c.AllowVolumeExpansion, false), columns.Since(c.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		columns.Text("Provisioner", class["provisioner"]),
		columns.Text("ReclaimPolicy", class["reclaimPolicy"]),
		columns.Text("VolumeBindingMode", class["volumeBindingMode"]),
		columns.Text("AllowVolumeExpansion", class["allowVolumeExpansion"]),
		columns.AgeColumn,
	)
}

func volumeAttributesClassLayout() columns.Layout {
	return columns.Table(func(c *storagev1.VolumeAttributesClass, now time.Time) []any {
		return []any{defaultMark(c.Name, c.Annotations, defaultVolumeAttributesClass), c.DriverName, columns.Since(c.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("DriverName", storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"]), columns.AgeColumn)
}

func defaultMark(name string, annotations map[string]string, marks ...string) string {
	for _, mark := range marks {
		if annotations[mark] == "true" {
			return name + " (default)"
		}
	}
	return name
}

func volumeAttachmentLayout() columns.Layout {
	spec := storagev1.VolumeAttachmentSpec{}.SwaggerDoc()
	return columns.Table(func(a *storagev1.VolumeAttachment, now time.Time) []any {
		return []any{
			a.Name, a.Spec.Attacher, columns.ValueOr(a.Spec.Source.PersistentVolumeName, ""), a.Spec.NodeName, a.Status.Attached,
			columns.Since(a.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		metav1.TableColumnDefinition{Name: "Attacher", Type: "string", Format: columns.NameColumn.Format, Description: spec["attacher"]},
		columns.Text("PV", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"]),
		columns.Text("Node", spec["nodeName"]),
		columns.Boolean("Attached", storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"]),
		columns.AgeColumn,
	)
}

func csiNodeLayout() columns.Layout {
	return columns.Table(func(n *storagev1.CSINode, now time.Time) []any {
		return []any{n.Name, int64(len(n.Spec.Drivers)), columns.Since(n.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Integer("Drivers", "Drivers indicates the number of CSI drivers registered on the node"), columns.AgeColumn)
}

func csiDriverLayout() columns.Layout {
	spec := storagev1.CSIDriverSpec{}.SwaggerDoc()
	return columns.Table(func(d *storagev1.CSIDriver, now time.Time) []any {
		modes := make([]string, len(d.Spec.VolumeLifecycleModes))
		for i, mode := range d.Spec.VolumeLifecycleModes {
			modes[i] = string(mode)
		}
		tokens := columns.Unset
		if d.Spec.TokenRequests != nil {
			audiences := make([]string, len(d.Spec.TokenRequests))
			for i, request := range d.Spec.TokenRequests {
				audiences[i] = request.Audience
			}
			tokens = strings.Join(audiences, ",")
		}
		return []any{
			d.Name, columns.ValueOr(d.Spec.AttachRequired, true), columns.ValueOr(d.Spec.PodInfoOnMount, false),
			columns.ValueOr(d.Spec.StorageCapacity, false), tokens, columns.ValueOr(d.Spec.RequiresRepublish, false),
			columns.Or(strings.Join(modes, ","), columns.None), columns.Since(d.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		columns.Boolean("AttachRequired", spec["attachRequired"]),
		columns.Boolean("PodInfoOnMount", spec["podInfoOnMount"]),
		columns.Boolean("StorageCapacity", spec["storageCapacity"]),
		columns.Text("TokenRequests", spec["tokenRequests"]),
		columns.Boolean("RequiresRepublish", spec["requiresRepublish"]),
		columns.Text("Modes", spec["volumeLifecycleModes"]),
		columns.AgeColumn,
	)
}
