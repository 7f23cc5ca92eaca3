package podrules

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// LimitHardAntiAffinity refuses pods that keep others away from more than their own node:
// one such pod could keep a whole zone free of others.
func LimitHardAntiAffinity(_ context.Context, q *registry.Request) error {
	pod := podOf(q)
	if pod == nil || pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname {
			return q.Forbidden(fmt.Errorf("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed", term.TopologyKey, corev1.LabelHostname))
		}
	}
	return nil
}
