// Package coordination defines Leases.
package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, define.Kind{
			Name: "Lease", Plural: "leases", NameRuleForNew: true, NoGeneration: true, ConditionalOnly: true, UpsertOnUpdate: true,
		}, leaseRules()),
	}
}
