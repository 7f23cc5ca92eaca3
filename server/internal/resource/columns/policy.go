package columns

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func policyGroup(all layouts) {
	all.add(policyv1.SchemeGroupVersion, "PodDisruptionBudget", podDisruptionBudgets())
}

func podDisruptionBudgets() layout {
	bound := func(v *intstr.IntOrString) string {
		if v == nil {
			return "N/A"
		}
		return v.String()
	}
	return table(func(b *policyv1.PodDisruptionBudget, now time.Time) []any {
		return []any{
			b.Name, bound(b.Spec.MinAvailable), bound(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed),
			since(b.CreationTimestamp, now),
		}
	},
		nameColumn,
		text("Min Available", "How many pods must stay available."),
		text("Max Unavailable", "How many pods may be unavailable."),
		integer("Allowed Disruptions", "How many pods may be evicted now."),
		ageColumn,
	)
}
