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
	spec, status := corev1.PersistentVolumeSpec{}.SwaggerDoc(), corev1.PersistentVolumeStatus{}.SwaggerDoc()
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
		columns.Text("Capacity", spec["capacity"]),
		columns.Text("Access Modes", spec["accessModes"]),
		columns.Text("Reclaim Policy", spec["persistentVolumeReclaimPolicy"]),
		columns.Text("Status", status["phase"]),
		columns.Text("Claim", spec["claimRef"]),
		columns.Text("StorageClass", "StorageClass of the pv"),
		columns.Text("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
		columns.Text("Reason", status["reason"]),
		columns.AgeColumn,
		columns.Wide(columns.Text("VolumeMode", spec["volumeMode"])),
	)
}

func persistentVolumeClaimLayout() columns.Layout {
	spec, status := corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(), corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
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
		columns.Text("Status", status["phase"]),
		columns.Text("Volume", spec["volumeName"]),
		columns.Text("Capacity", status["capacity"]),
		columns.Text("Access Modes", status["accessModes"]),
		columns.Text("StorageClass", "StorageClass of the pvc"),
		columns.Text("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
		columns.AgeColumn,
		columns.Wide(columns.Text("VolumeMode", spec["volumeMode"])),
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
