package noderestriction

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestManyVolumesOfOneClaim: the claims and drivers of a pod's volumes are each read once.
func TestManyVolumesOfOneClaim(t *testing.T) {
	claims, drivers := 0, 0
	search := audienceSearch{
		audience: "vault",
		claim: func(name string) (string, error) {
			if claims++; name == "lost" {
				return "", errors.New("there is none")
			}
			return "driver", nil
		},
		driver: func(name string) (*storagev1.CSIDriver, error) {
			drivers++
			d := &storagev1.CSIDriver{}
			if name == "last" {
				d.Spec.TokenRequests = []storagev1.TokenRequest{{Audience: "vault"}}
			}
			return d, nil
		},
		asked: sets.New[string](),
	}
	pod := &corev1.Pod{}
	add := func(source corev1.VolumeSource) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: source})
	}
	for range 1000 {
		for _, name := range []string{"data", "lost"} {
			add(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
		}
		add(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "driver"}})
	}
	if named, err := search.in(pod); named || err == nil || err.Error() != "there is none" || claims != 2 || drivers != 1 {
		t.Errorf("named: %v, %v; %d claims and %d drivers were read", named, err, claims, drivers)
	}
	add(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "last"}})
	if named, err := search.in(pod); !named || err != nil {
		t.Errorf("a driver that gets the tokens: %v, %v", named, err)
	}
}
