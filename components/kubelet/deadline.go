package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What the real kubelet says of a pod that it has ended for its activeDeadlineSeconds.
const (
	reasonDeadline  = "DeadlineExceeded"
	messageDeadline = "Pod was active on the node longer than the specified deadline"
)

// expiry returns when a pod that was accepted has been active for as long as it may. limited is false if it may be for ever.
// It counts from the time that the status shows, as Kubernetes does, so that a restarted kubelet comes to the same end.
func expiry(pod *corev1.Pod) (at time.Time, limited bool) {
	seconds := pod.Spec.ActiveDeadlineSeconds
	if seconds == nil {
		return time.Time{}, false
	}
	return pod.Status.StartTime.Add(time.Duration(*seconds) * time.Second), true
}

// expire ends a pod that has been active for as long as it may.
func (k *Kubelet) expire(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	if err := k.patchStatus(ctx, pod, expired(pod, now)); err != nil {
		return err
	}
	k.events.Normal(pod, reasonDeadline, messageDeadline)
	return nil
}

// expired is the status of a pod whose containers were stopped since it was active for too long.
func expired(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	code, _ := killed(pod)
	status := stopped(pod, code, corev1.PodFailed, now)
	status.Reason, status.Message = reasonDeadline, messageDeadline
	return status
}
