package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// evictionTime is when the pod must leave its node because of taints with
// effect NoExecute: at once if it does not tolerate one, or when the shortest
// of the toleration times it has been given is over. ok is false if it may
// stay for ever. since returns when the pod was first seen with a taint that it
// tolerates for a while: its time begins then, however old the taint is.
func evictionTime(pod *corev1.Pod, taints []corev1.Taint, since func(taint *corev1.Taint) time.Time) (at time.Time, ok bool) {
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		left, forever := toleration(pod, taint)
		if forever {
			continue
		}
		if due := since(taint).Add(left); !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// toleration is how long the pod tolerates the taint: the shortest time of the
// tolerations that match, for ever if none of them has one.
func toleration(pod *corev1.Pod, taint *corev1.Taint) (left time.Duration, forever bool) {
	matched := false
	forever = true
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if !t.ToleratesTaint(klog.Background(), taint, false) {
			continue
		}
		matched = true
		if t.TolerationSeconds == nil {
			continue
		}
		seconds := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second
		if forever || seconds < left {
			left, forever = seconds, false
		}
	}
	if !matched {
		return 0, false
	}
	return left, forever
}
