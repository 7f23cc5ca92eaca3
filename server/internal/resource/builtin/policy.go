package builtin

import (
	policyv1 "k8s.io/api/policy/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func policyResources() []*resource.Resource {
	return []*resource.Resource{
		define[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, kind{
			Name: "PodDisruptionBudget", Plural: "poddisruptionbudgets", ShortNames: []string{"pdb"}, Status: true, ConditionalOnly: true,
		}, podDisruptionBudgetRules()),
	}
}
