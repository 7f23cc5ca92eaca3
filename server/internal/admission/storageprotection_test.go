package admission_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/admission"
)

func newClaim(name string, finalizers ...string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}
}

// TestStorageObjectInUseProtection: new claims and volumes have the finalizer once, and
// stay while they have it.
func TestStorageObjectInUseProtection(t *testing.T) {
	const ofClaim, ofVolume = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
	c, without := start(t), start(t, admission.StorageObjectInUseProtection)
	for name, finalizers := range map[string][]string{"none": nil, "same": {ofClaim}, "other": {"example.com/f"}} {
		want := slices.Clone(finalizers)
		if !slices.Contains(want, ofClaim) {
			want = append(want, ofClaim)
		}
		made := must[*corev1.PersistentVolumeClaim](t, name)(create(c, newClaim(name, finalizers...)))
		if !slices.Equal(made.Finalizers, want) {
			t.Errorf("%s: %v", name, made.Finalizers)
		}
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
	}}
	volumes := client.For[*corev1.PersistentVolume](c.Client)
	made := must[*corev1.PersistentVolume](t, "volume")(volumes.Create(t.Context(), volume, metav1.CreateOptions{}))
	if !slices.Equal(made.Finalizers, []string{ofVolume}) {
		t.Errorf("volume: %v", made.Finalizers)
	}
	if err := volumes.Delete(t.Context(), "v", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	made = must[*corev1.PersistentVolume](t, "deleted volume")(volumes.Get(t.Context(), "v", metav1.GetOptions{}))
	made.Finalizers = nil
	if _, err := volumes.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := volumes.Get(t.Context(), "v", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without its finalizer: %v", err)
	}
	class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: "csi.example.com", Parameters: map[string]string{"iops": "1"}}
	classes := client.For[*storagev1.VolumeAttributesClass](c.Client)
	if made := must[*storagev1.VolumeAttributesClass](t, "class")(classes.Create(t.Context(), class, metav1.CreateOptions{})); !slices.Equal(made.Finalizers, []string{"kubernetes.io/vac-protection"}) {
		t.Errorf("class: %v", made.Finalizers)
	}
	if made := must[*corev1.PersistentVolumeClaim](t, "claim")(create(without, newClaim("c"))); len(made.Finalizers) != 0 {
		t.Errorf("without the plugin: %v", made.Finalizers)
	}
}
