package podrules

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// RuntimeClasses gives pods what their RuntimeClass costs (its overhead), and where nodes
// have it (KEP-585, KEP-688).
type RuntimeClasses struct{ set *registry.Set }

// NewRuntimeClasses returns the plugin for the classes of a set.
func NewRuntimeClasses(set *registry.Set) RuntimeClasses { return RuntimeClasses{set} }

// Mutate sets a new pod's overhead, node selector and tolerations.
func (r RuntimeClasses) Mutate(ctx context.Context, q *registry.Request) error {
	pod := newPod(q)
	if pod == nil || pod.Spec.RuntimeClassName == nil {
		return nil
	}
	class, err := r.classOf(ctx, q, pod)
	if err != nil || class == nil {
		return err
	}
	if class.Overhead != nil {
		if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return q.Forbidden(fmt.Errorf("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
		}
		pod.Spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	for _, label := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		value := class.Scheduling.NodeSelector[label]
		if wanted, ok := pod.Spec.NodeSelector[label]; ok && wanted != value {
			return q.Forbidden(fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", label, value, label, wanted))
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[label] = value
	}
	pod.Spec.Tolerations = union(slices.Concat(pod.Spec.Tolerations, class.Scheduling.Tolerations))
	return nil
}

// Validate refuses an overhead that is not the class's.
func (r RuntimeClasses) Validate(ctx context.Context, q *registry.Request) error {
	pod := newPod(q)
	if pod == nil || pod.Spec.RuntimeClassName == nil && pod.Spec.Overhead == nil {
		return nil
	}
	class, err := r.classOf(ctx, q, pod)
	switch {
	case err != nil:
		return err
	case class != nil && class.Overhead != nil:
		if !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return q.Forbidden(fmt.Errorf("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
		}
	case pod.Spec.Overhead != nil:
		return q.Forbidden(fmt.Errorf("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
	}
	return nil
}

// classOf returns the class that the pod names, nil if it names none.
func (r RuntimeClasses) classOf(ctx context.Context, q *registry.Request, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	if pod.Spec.RuntimeClassName == nil {
		return nil, nil
	}
	classes, ok := r.set.Lookup(nodev1.GroupName, "v1", "runtimeclasses")
	if !ok {
		return nil, nil
	}
	class, err := registry.GetAs[*nodev1.RuntimeClass](ctx, classes, "", *pod.Spec.RuntimeClassName)
	if apierrors.IsNotFound(err) {
		return nil, q.Forbidden(fmt.Errorf("pod rejected: RuntimeClass %q not found", *pod.Spec.RuntimeClassName))
	}
	return class, err
}
