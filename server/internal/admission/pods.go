package admission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
)

var podsResource = schema.GroupResource{Resource: "pods"}

// podOf returns the pod that is being created or replaced, and nil for everything
// else: the plugins do not look at writes to subresources.
func podOf(q *registry.Request) *corev1.Pod {
	if q.Resource.GroupResource() != podsResource || q.Subresource != "" {
		return nil
	}
	pod, ok := q.Object.(*corev1.Pod)
	if !ok || (q.Operation != registry.Create && q.Operation != registry.Update) {
		return nil
	}
	return pod
}
