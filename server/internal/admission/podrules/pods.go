package podrules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
)

var podsResource = schema.GroupResource{Resource: "pods"}

// newPod returns the pod that is being created, nil for every other request.
func newPod(q *registry.Request) *corev1.Pod {
	if q.Operation != registry.Create {
		return nil
	}
	return podOf(q)
}

// podOf returns the pod that is being created or replaced, nil for every other request.
func podOf(q *registry.Request) *corev1.Pod {
	if q.Resource.GroupResource() != podsResource || q.Subresource != "" ||
		q.Operation != registry.Create && q.Operation != registry.Update {
		return nil
	}
	pod, _ := q.Object.(*corev1.Pod)
	return pod
}
