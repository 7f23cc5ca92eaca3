package core

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

func persistentVolumeLayout() columns.Layout {
	return columns.Table(func(v *corev1.PersistentVolume, now time.Time) []any {
		claim := ""
		if ref := v.Spec.ClaimRef; ref != nil {
			claim = ref.Namespace + "/" + ref.Name
		}
		size := v.Spec.Capacity[corev1.ResourceStorage]
		return []any{
			v.Name, size.String(), accessModes(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy),
			phaseOrTerminating(v.DeletionTimestamp, string(v.Status.Phase)), claim,
			storageClassName(v.Annotations, v.Spec.StorageClassName), columns.ValueOr(v.Spec.VolumeAttributesClassName, columns.Unset),
			v.Status.Reason, columns.Since(v.CreationTimestamp, now), string(columns.ValueOr(v.Spec.VolumeMode, columns.Unset)),
		}
	},
		columns.NameColumn,
		columns.Text("Capacity", "The volume's size."),
		columns.Text("Access Modes", "How the volume may be mounted."),
		columns.Text("Reclaim Policy", "What happens to the volume when its claim goes."),
		columns.Text("Status", "Whether the volume is bound."),
		columns.Text("Claim", "The claim that the volume is bound to."),
		columns.Text("StorageClass", "The storage class of the volume."),
		columns.Text("VolumeAttributesClass", "The volume attributes class of the volume."),
		columns.Text("Reason", "Why the volume is in this status."),
		columns.AgeColumn,
		columns.Wide(columns.Text("VolumeMode", "Whether the volume is a file system or a block device.")),
	)
}

func persistentVolumeClaimLayout() columns.Layout {
	return columns.Table(func(c *corev1.PersistentVolumeClaim, now time.Time) []any {
		capacity, modes := "", ""
		if c.Spec.VolumeName != "" { // what it asks for is not what it has
			size := c.Status.Capacity[corev1.ResourceStorage]
			capacity, modes = size.String(), accessModes(c.Status.AccessModes)
		}
		return []any{
			c.Name, phaseOrTerminating(c.DeletionTimestamp, string(c.Status.Phase)), c.Spec.VolumeName, capacity, modes,
			storageClassName(c.Annotations, columns.ValueOr(c.Spec.StorageClassName, "")),
			columns.ValueOr(c.Spec.VolumeAttributesClassName, columns.Unset), columns.Since(c.CreationTimestamp, now),
			string(columns.ValueOr(c.Spec.VolumeMode, columns.Unset)),
		}
	},
		columns.NameColumn,
		columns.Text("Status", "Whether the claim is bound."),
		columns.Text("Volume", "The volume that the claim is bound to."),
		columns.Text("Capacity", "The size of the volume."),
		columns.Text("Access Modes", "How the volume may be mounted."),
		columns.Text("StorageClass", "The storage class of the claim."),
		columns.Text("VolumeAttributesClass", "The volume attributes class of the claim."),
		columns.AgeColumn,
		columns.Wide(columns.Text("VolumeMode", "Whether the volume is a file system or a block device.")),
	)
}

func phaseOrTerminating(deleted *metav1.Time, phase string) string {
	if deleted != nil {
		return "Terminating"
	}
	return phase
}

// storageClassName prefers the annotation that came before the field.
func storageClassName(annotations map[string]string, field string) string {
	if class, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return field
}

// accessModes returns the short names of modes, always in the same order.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	var list []string
	for _, known := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{
		{corev1.ReadWriteOnce, "RWO"},
		{corev1.ReadOnlyMany, "ROX"},
		{corev1.ReadWriteMany, "RWX"},
		{corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, known.mode) {
			list = append(list, known.short)
		}
	}
	return strings.Join(list, ",")
}
