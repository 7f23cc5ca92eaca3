package coordination

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(coordinationv1.SchemeGroupVersion, "Lease", leaseLayout())
	all.Add(coordinationv1beta1.SchemeGroupVersion, "LeaseCandidate", leaseCandidateLayout())
}

func leaseLayout() columns.Layout {
	return columns.Table(func(l *coordinationv1.Lease, now time.Time) []any {
		return []any{l.Name, columns.ValueOr(l.Spec.HolderIdentity, ""), columns.Since(l.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Text("Holder", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]), columns.AgeColumn)
}

func leaseCandidateLayout() columns.Layout {
	return columns.Table(func(c *coordinationv1beta1.LeaseCandidate, now time.Time) []any {
		return []any{c.Name, c.Spec.LeaseName, c.Spec.BinaryVersion, c.Spec.EmulationVersion, columns.Since(c.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("LeaseName", coordinationv1alpha2.LeaseCandidateSpec{}.SwaggerDoc()["leaseName"]),
		columns.Text("BinaryVersion", ""), // as in Kubernetes, and the next
		columns.Text("EmulationVersion", ""),
		columns.AgeColumn,
	)
}
