package coordination

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
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
	}, columns.NameColumn, columns.Text("Holder", "Who holds the lease."), columns.AgeColumn)
}

func leaseCandidateLayout() columns.Layout {
	return columns.Table(func(c *coordinationv1beta1.LeaseCandidate, now time.Time) []any {
		return []any{c.Name, c.Spec.LeaseName, c.Spec.BinaryVersion, c.Spec.EmulationVersion, columns.Since(c.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("LeaseName", "The lease that is stood for."),
		columns.Text("BinaryVersion", "The version of the candidate."),
		columns.Text("EmulationVersion", "The version that the candidate behaves like."),
		columns.AgeColumn,
	)
}
