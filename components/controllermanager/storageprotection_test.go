package controller_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// TestUsedStorageStays: a claim that is deleted goes when its last pod has gone, and a
// volume when it is not bound any more.
func TestUsedStorageStays(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	claims, pods, volumes := in[*corev1.PersistentVolumeClaim](c), in[*corev1.Pod](c), client.For[*corev1.PersistentVolume](c.client)
	for _, name := range []string{"used", "free"} {
		create(c, claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storageOf("1Gi"),
		}})
	}
	create(c, pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "c:1"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "used"},
		}}},
	}})
	await(c, pods, "p", "bound", func(p *corev1.Pod) bool { return p != nil && p.Spec.NodeName != "" })
	remove(c, claims, "used", metav1.DeleteOptions{})
	remove(c, claims, "free", metav1.DeleteOptions{})
	awaitClaims(c, "used")
	remove(c, pods, "p", metav1.DeleteOptions{})
	awaitClaims(c, "")

	create(c, volumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: storageOf("1Gi").Requests,
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
	}})
	setPhase := func(phase corev1.PersistentVolumePhase) {
		volume, err := volumes.Get(c.ctx, "v", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		volume.Status.Phase = phase
		if _, err := volumes.UpdateStatus(c.ctx, volume, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	setPhase(corev1.VolumeBound)
	remove(c, volumes, "v", metav1.DeleteOptions{})
	volume, err := volumes.Get(c.ctx, "v", metav1.GetOptions{})
	if err != nil || !slices.Equal(volume.Finalizers, []string{"kubernetes.io/pv-protection"}) {
		t.Fatalf("a bound volume: %v, %v", volume, err)
	}
	setPhase(corev1.VolumeReleased)
	awaitEach(c, volumes, metav1.ListOptions{}, "the volume's end", func(all map[string]*corev1.PersistentVolume) bool { return len(all) == 0 })
}

// TestUsedAttributesClassStays: a class that is deleted goes when no claim, and no volume, has it
// any more.
func TestUsedAttributesClassStays(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	classes, claims, volumes := client.For[*storagev1.VolumeAttributesClass](c.client), in[*corev1.PersistentVolumeClaim](c), client.For[*corev1.PersistentVolume](c.client)
	for _, name := range []string{"ofclaim", "ofvolume", "free"} {
		create(c, classes, &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: "csi.example.com", Parameters: map[string]string{"iops": "1"}})
	}
	ofClaim, ofVolume := "ofclaim", "ofvolume"
	create(c, claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storageOf("1Gi"), VolumeAttributesClassName: &ofClaim,
	}})
	create(c, volumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: storageOf("1Gi").Requests, VolumeAttributesClassName: &ofVolume,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "v"}},
	}})
	for _, name := range []string{"ofclaim", "ofvolume", "free"} {
		remove(c, classes, name, metav1.DeleteOptions{})
	}
	left := func(want ...string) {
		t.Helper()
		awaitEach(c, classes, metav1.ListOptions{}, "only what is used is left", func(all map[string]*storagev1.VolumeAttributesClass) bool {
			for _, name := range want {
				if all[name] == nil {
					t.Fatalf("%s has gone, and is used", name)
				}
			}
			return len(all) == len(want)
		})
	}
	left("ofclaim", "ofvolume")
	remove(c, claims, "c", metav1.DeleteOptions{})
	left("ofvolume")
	remove(c, volumes, "v", metav1.DeleteOptions{})
	left()
}
