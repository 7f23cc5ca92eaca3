package podsecurity_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// TestProfilesOfUpdates: a pod that was allowed gets no annotation by which its
// containers would run without a profile; other annotations may change. It is the rules of pods
// that refuse it, before the policy is asked: no update may add such an annotation.
func TestProfilesOfUpdates(t *testing.T) {
	cl, _ := start(t)
	ok(t, "namespace", createNamespace(t, cl, "base", map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}))
	ok(t, "pod", createPod(t, cl, "base", plain()))
	pods := client.For[*corev1.Pod](cl).Namespace("base")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	ok(t, "list", err)
	pod := list.Items[0]
	pod.Annotations = map[string]string{"a": "b"}
	pod, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	ok(t, "another annotation", err)
	pod.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+pod.Spec.Containers[0].Name] = "unconfined"
	if _, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an unconfined container: %v, want it to be invalid", err)
	}
}
