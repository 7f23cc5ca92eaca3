// Package flowcontrol defines FlowSchemas and PriorityLevelConfigurations.
package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := flowcontrolv1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[flowcontrolv1.FlowSchema, flowcontrolv1.FlowSchemaList](gv, define.Kind{
			Name: "FlowSchema", Plural: "flowschemas", Cluster: true, Status: true, StatusKeeps: resource.AllMetadata, NamesBeforeFinalizers: true,
		}, flowSchemaRules()),
		define.Resource[flowcontrolv1.PriorityLevelConfiguration, flowcontrolv1.PriorityLevelConfigurationList](gv, define.Kind{
			Name: "PriorityLevelConfiguration", Plural: "prioritylevelconfigurations", Cluster: true, Status: true, StatusKeeps: resource.AllMetadata, NamesBeforeFinalizers: true,
		}, priorityLevelRules()),
	}
}
