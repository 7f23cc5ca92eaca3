package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
)

var nodesResource = schema.GroupResource{Resource: "nodes"}

// taintNewNode keeps the scheduler from using a node before its kubelet has said that the
// node is ready. The node lifecycle controller takes the taint away then.
func taintNewNode(_ context.Context, q *registry.Request) error {
	if q.Operation != registry.Create || q.Resource.GroupResource() != nodesResource || q.Subresource != "" {
		return nil
	}
	node, ok := q.Object.(*corev1.Node)
	if !ok {
		return nil
	}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&notReady) }) {
		node.Spec.Taints = append(node.Spec.Taints, notReady)
	}
	return nil
}
