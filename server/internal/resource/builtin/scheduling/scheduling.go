// Package scheduling defines PriorityClasses.
package scheduling

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[schedulingv1.PriorityClass, schedulingv1.PriorityClassList](schedulingv1.SchemeGroupVersion, define.Kind{
			Name: "PriorityClass", Plural: "priorityclasses", NameRuleForNew: true, ShortNames: []string{"pc"}, Cluster: true, NoGeneration: true,
		}, priorityClassRules()),
	}
}
