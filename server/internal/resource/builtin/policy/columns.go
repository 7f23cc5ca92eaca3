package policy

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(policyv1.SchemeGroupVersion, "PodDisruptionBudget", podDisruptionBudgetLayout())
}

func podDisruptionBudgetLayout() columns.Layout {
	bound := func(v *intstr.IntOrString) string {
		if v == nil {
			return "N/A"
		}
		return v.String()
	}
	return columns.Table(func(b *policyv1.PodDisruptionBudget, now time.Time) []any {
		return []any{
			b.Name, bound(b.Spec.MinAvailable), bound(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed),
			columns.Since(b.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		columns.Text("Min Available", "The minimum number of pods that must be available."),
		columns.Text("Max Unavailable", "The maximum number of pods that may be unavailable."),
		columns.Integer("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
		columns.AgeColumn,
	)
}
