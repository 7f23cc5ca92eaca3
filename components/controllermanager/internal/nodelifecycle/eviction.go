package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/internal/tolerations"
)

// evictionTime is when the pod must leave its node because of taints with
// effect NoExecute: at once if it does not tolerate one, or when the shortest
// of the toleration times it has been given is over. ok is false if it may
// stay for ever. since returns when the pod was first seen with a taint that it
// tolerates for a while: its time begins then, however old the taint is.
func evictionTime(pod *corev1.Pod, taints []corev1.Taint, since func(taint *corev1.Taint) time.Time) (at time.Time, ok bool) {
	tolerated := tolerations.Of(pod.Spec.Tolerations)
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		left, forever := untilEviction(&tolerated, taint)
		if forever {
			continue
		}
		if due := since(taint).Add(left); !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// untilEviction is how long the pod may stay with the taint: for ever if the toleration that
// matches it has no time.
func untilEviction(tolerated *tolerations.Index, taint *corev1.Taint) (left time.Duration, forever bool) {
	seconds, limited, ok := tolerated.Seconds(taint)
	return time.Duration(max(seconds, 0)) * time.Second, ok && !limited
}
