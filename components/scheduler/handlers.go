package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/informer"
)

// podHandler keeps the ledger up to date with bound pods and queues those
// that need a node.
func (s *Scheduler) podHandler() informer.Handler[*corev1.Pod] {
	return informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) { s.podChanged(nil, pod) },
		Update: func(old, pod *corev1.Pod) {
			if old.UID != pod.UID {
				s.podGone(old) // deleted and created anew between two events
				old = nil
			}
			s.podChanged(old, pod)
		},
		Delete: func(pod *corev1.Pod, _ bool) { s.podGone(pod) },
	}
}

func (s *Scheduler) podChanged(old, pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		s.waiting.forget(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		if s.ledger.observe(pod) {
			s.retryWaiting()
		}
		return
	}
	if old == nil && s.responsible(pod) && pod.Status.NominatedNodeName != "" { // by the scheduler that ran before
		s.ledger.nominate(pod, pod.Status.NominatedNodeName)
	}
	if !s.responsible(pod) && s.ledger.withdrawn(pod.UID) { // deleted, but kept by a finalizer, or ended
		s.retryWaiting()
	}
	// A pod's own status updates do not change where it fits.
	if s.responsible(pod) && (old == nil || !equality.Semantic.DeepEqual(old.Spec, pod.Spec)) {
		s.loop.AddPriority(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, priority(pod))
	}
}

func (s *Scheduler) podGone(pod *corev1.Pod) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	s.loop.Forget(key)
	s.waiting.forget(key)
	if s.ledger.release(pod.UID) {
		s.retryWaiting()
	}
}

func (s *Scheduler) nodeHandler() informer.Handler[*corev1.Node] {
	return informer.HandlerFuncs[*corev1.Node]{
		Add: func(node *corev1.Node, _ bool) {
			s.ledger.setNode(node)
			s.retryWaiting()
		},
		Update: func(old, node *corev1.Node) {
			s.ledger.setNode(node)
			if offersOtherwise(old, node) {
				s.retryWaiting()
			}
		},
		Delete: func(node *corev1.Node, _ bool) { s.ledger.removeNode(node.Name) },
	}
}

// offersOtherwise reports whether the change could let a pod in that did not
// fit before. Heartbeats do not.
func offersOtherwise(old, node *corev1.Node) bool {
	return !equality.Semantic.DeepEqual(old.Spec, node.Spec) ||
		!equality.Semantic.DeepEqual(old.Labels, node.Labels) ||
		!equality.Semantic.DeepEqual(old.Status.Allocatable, node.Status.Allocatable)
}
