package builtin

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func schedulingResources() []*resource.Resource {
	return []*resource.Resource{
		define[schedulingv1.PriorityClass, schedulingv1.PriorityClassList](schedulingv1.SchemeGroupVersion, kind{
			Name: "PriorityClass", Plural: "priorityclasses", ShortNames: []string{"pc"}, Cluster: true,
		}, priorityClassRules()),
	}
}
