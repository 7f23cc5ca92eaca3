package builtin

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func flowcontrolResources() []*resource.Resource {
	gv := flowcontrolv1.SchemeGroupVersion
	return []*resource.Resource{
		define[flowcontrolv1.FlowSchema, flowcontrolv1.FlowSchemaList](gv, kind{
			Name: "FlowSchema", Plural: "flowschemas", Cluster: true, Status: true,
		}, flowSchemaRules()),
		define[flowcontrolv1.PriorityLevelConfiguration, flowcontrolv1.PriorityLevelConfigurationList](gv, kind{
			Name: "PriorityLevelConfiguration", Plural: "prioritylevelconfigurations", Cluster: true, Status: true,
		}, priorityLevelRules()),
	}
}
