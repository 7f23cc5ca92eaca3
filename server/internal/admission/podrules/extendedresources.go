package podrules

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// ExtendedResourceToleration lets pods that request an extended resource, such as a GPU,
// onto nodes that are tainted with its name.
func ExtendedResourceToleration(_ context.Context, q *registry.Request) error {
	pod := podOf(q)
	if pod == nil {
		return nil
	}
	requested := map[string]bool{}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if isExtended(string(name)) {
					requested[string(name)] = true
				}
			}
		}
	}
	has := sets.New(pod.Spec.Tolerations...)
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		toleration := corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
		if !has.Has(toleration) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
	return nil
}

// isExtended reports whether a resource has a domain that is not Kubernetes' own.
func isExtended(name string) bool {
	domain, _, ok := strings.Cut(name, "/")
	return ok && !strings.HasSuffix(domain, "kubernetes.io") && !strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix)
}
