package columns

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
)

func coordinationGroup(all layouts) {
	all.add(coordinationv1.SchemeGroupVersion, "Lease", leases())
	all.add(coordinationv1beta1.SchemeGroupVersion, "LeaseCandidate", leaseCandidates())
}

func leases() layout {
	return table(func(l *coordinationv1.Lease, now time.Time) []any {
		return []any{l.Name, value(l.Spec.HolderIdentity, ""), since(l.CreationTimestamp, now)}
	}, nameColumn, text("Holder", "Who holds the lease."), ageColumn)
}

func leaseCandidates() layout {
	return table(func(c *coordinationv1beta1.LeaseCandidate, now time.Time) []any {
		return []any{c.Name, c.Spec.LeaseName, c.Spec.BinaryVersion, c.Spec.EmulationVersion, since(c.CreationTimestamp, now)}
	},
		nameColumn,
		text("LeaseName", "The lease that is stood for."),
		text("BinaryVersion", "The version of the candidate."),
		text("EmulationVersion", "The version that the candidate behaves like."),
		ageColumn,
	)
}
