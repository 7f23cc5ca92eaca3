package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// tolerationSeconds is how long a pod stays on a node that has failed, unless it
// says otherwise.
const tolerationSeconds = 300

// addTolerations lets pods stay for a while on a node that is not ready or not
// reachable.
func addTolerations(_ context.Context, q *registry.Request) error {
	pod := podOf(q)
	if pod == nil {
		return nil
	}
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !tolerates(pod.Spec.Tolerations, taint) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(tolerationSeconds)),
			})
		}
	}
	return nil
}

func tolerates(tolerations []corev1.Toleration, taint string) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
	})
}
