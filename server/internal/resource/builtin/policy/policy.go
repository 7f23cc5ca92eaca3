// Package policy defines PodDisruptionBudgets.
package policy

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, define.Kind{
			Name: "PodDisruptionBudget", Plural: "poddisruptionbudgets", NameRule: path.ValidatePathSegmentName, MetadataIfValid: true, ShortNames: []string{"pdb"}, Status: true, ConditionalOnly: true,
		}, podDisruptionBudgetRules()),
	}
}
