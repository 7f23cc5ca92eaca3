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
		columns.Text("Min Available", "How many pods must stay available."),
		columns.Text("Max Unavailable", "How many pods may be unavailable."),
		columns.Integer("Allowed Disruptions", "How many pods may be evicted now."),
		columns.AgeColumn,
	)
}
