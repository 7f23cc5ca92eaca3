package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func coordinationResources() []*resource.Resource {
	return []*resource.Resource{
		define[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, kind{
			Name: "Lease", Plural: "leases", NoGeneration: true, ConditionalOnly: true, UpsertOnUpdate: true,
		}, leaseRules()),
	}
}
