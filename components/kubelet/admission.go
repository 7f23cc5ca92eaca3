package kubelet

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/internal/nodeaffinity"
	"github.com/levelwire/levelwire/internal/tolerations"
)

// refusal is why a node does not admit a pod that is bound to it, in the words of the real kubelet.
type refusal struct{ reason, message string }

// accept reports a pod that was just bound as one whose containers are being created, if the node admits it.
func (k *Kubelet) accept(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	why, err := k.admit(ctx, pod)
	switch {
	case err != nil:
		return err
	case why == nil:
		return k.patchStatus(ctx, pod, accepted(pod, k.opts.NodeIP, now))
	}
	if err := k.patchStatus(ctx, pod, rejected(pod, why, now)); err != nil {
		return err
	}
	k.events.Warning(pod, why.reason, "%s", why.message)
	return nil
}

// admit has a pod hold what it asks of the node, or returns why that is not possible. Before a pod is refused, it is
// held against the latest state: who bound it may have seen a later node (a label, a taint that is gone) than the cache has, and
// the cache may have it in the place of one of the same name of which the handler has not heard yet that it is gone.
func (k *Kubelet) admit(ctx context.Context, pod *corev1.Pod) (*refusal, error) {
	if node, known := k.node.Lister().Get("", k.opts.NodeName); known {
		if why := k.allocations.admit(pod, node); why == nil {
			return nil, nil
		}
	}
	node, err := k.nodeAPI.Get(ctx, k.opts.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		node = k.nodeObject() // as the heartbeat will make it again
	case err != nil:
		return nil, err
	}
	k.releaseEnded()
	for other := range k.pods.Lister().All("", nil) {
		if _, changed := k.allocations.resize(other, node); changed {
			k.loop.Add(controller.KeyOf(other))
		}
	}
	return k.allocations.admit(pod, node), nil
}

// releaseEnded takes back what pods hold that the cache shows as ended or gone. It asks first who holds anything: a pod
// that is admitted meanwhile may have come to the cache after it was listed.
func (k *Kubelet) releaseEnded() {
	holders, living := k.allocations.holders(), map[types.UID]bool{}
	for pod := range k.pods.Lister().All("", nil) {
		living[pod.UID] = !ended(pod)
	}
	for _, pod := range holders {
		if !living[pod] {
			k.release(pod)
		}
	}
}

// rejected is the status of a pod that the node did not admit.
func rejected(pod *corev1.Pod, why *refusal, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	at := metav1.NewTime(now)
	status.StartTime = &at
	status.Phase, status.Reason, status.Message = corev1.PodFailed, why.reason, "Pod was rejected: "+why.message
	status.ObservedGeneration = pod.Generation
	return status
}

// refusal returns why the node cannot run a pod that asks for so much beside those that it has. It needs a.mu.
func (a *allocations) refusal(pod *corev1.Pod, wanted allocation, node *corev1.Node) *refusal {
	if why := a.lacking(wanted, node.Status.Allocatable); why != nil {
		return why
	}
	if required := nodeaffinity.RequiredBy(&pod.Spec); !required.Matches(node) {
		return failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
	}
	for _, port := range wanted.ports {
		if a.taken(port) {
			return failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
		}
	}
	tolerated := tolerations.Of(pod.Spec.Tolerations)
	for i := range node.Spec.Taints {
		if taint := &node.Spec.Taints[i]; taint.Effect == corev1.TaintEffectNoExecute && !tolerated.Tolerate(taint) {
			return failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
		}
	}
	return nil
}

func failed(predicate, why string) *refusal {
	return &refusal{predicate, fmt.Sprintf("Predicate %s failed: %s", predicate, why)}
}

// lacking returns of which resource the node has not enough left. It needs a.mu.
func (a *allocations) lacking(wanted allocation, offered corev1.ResourceList) *refusal {
	for _, m := range wanted.amounts {
		quantity, ok := offered[m.name]
		if !ok && extended(m.name) {
			continue // a resource of the cluster, or of a ResourceClaim, which a node does not offer
		}
		if capacity, used := valueOf(m.name, quantity), a.used[m.name]; m.value > capacity-used {
			return &refusal{"OutOf" + string(m.name), fmt.Sprintf(
				"Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", m.name, m.value, used, capacity)}
		}
	}
	return nil
}

// extended reports whether a resource is none of Kubernetes' own.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}
