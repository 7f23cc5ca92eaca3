package scheduler

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const bindTimeout = 30 * time.Second

// bind posts the decision. On failure the room is given back and the pod is
// tried again: the binding may have reached the server all the same, and then
// its watch event charges the pod anew. Room for which others have left is kept
// free for the pod: if they came back, they would have to leave again, for each
// time that the binding fails.
func (s *Scheduler) bind(ctx context.Context, pod *corev1.Pod, node string, nominated bool) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	bindCtx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	err := s.podAPI.Namespace(pod.Namespace).SubResource("binding").Create(bindCtx, pod.Name, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err == nil {
		s.loop.Forget(key)
		s.events.Normal(pod, "Scheduled", "Successfully assigned %s to %s", key, node)
		return
	}
	if s.ledger.releaseAssumed(pod.UID) {
		if nominated {
			s.nominate(pod, node)
		}
		s.retryWaiting()
	}
	if ctx.Err() != nil || apierrors.IsNotFound(err) {
		return // shutting down, or the pod went away
	}
	s.log.Warn("binding failed", "pod", key, "node", node, "error", err)
	s.events.Warning(pod, "FailedScheduling", "binding to %s failed: %v", node, err)
	s.loop.Retry(key)
}

// reportUnschedulable says on the pod, and in an event, why it has no node.
// A pod that says so already is left alone. ended says that it waits for no node, whatever its
// status says.
func (s *Scheduler) reportUnschedulable(ctx context.Context, pod *corev1.Pod, why string, ended bool) error {
	since, nominated := metav1.Now(), s.ledger.nominatedFor(pod.UID)
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			if condition.Message == why && !ended && (nominated == "" || nominated == pod.Status.NominatedNodeName) {
				return nil
			}
			since = condition.LastTransitionTime
		}
	}
	s.events.Warning(pod, "FailedScheduling", "%s", why)
	status := map[string]any{
		"conditions": []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: why,
			LastTransitionTime: since, ObservedGeneration: pod.Generation,
		}},
	}
	switch {
	case nominated != "":
		status["nominatedNodeName"] = nominated
	case ended:
		status["nominatedNodeName"] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	_, err = s.podAPI.Namespace(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or replaced by another of the same name
	}
	return err
}
