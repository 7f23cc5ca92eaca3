package podrules

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// AlwaysPullImages makes kubelets pull the images of each pod, so that a pod cannot use
// an image only because another pod of its node had the credentials for it.
func AlwaysPullImages(_ context.Context, q *registry.Request) error {
	pod := podOf(q)
	if pod == nil {
		return nil
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		pod.Spec.EphemeralContainers[i].ImagePullPolicy = corev1.PullAlways
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			image.PullPolicy = corev1.PullAlways
		}
	}
	return nil
}
