package builtin

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func nodeResources() []*resource.Resource {
	return []*resource.Resource{
		define[nodev1.RuntimeClass, nodev1.RuntimeClassList](nodev1.SchemeGroupVersion, kind{
			Name: "RuntimeClass", Plural: "runtimeclasses", Cluster: true, NoGeneration: true, ConditionalOnly: true,
		}, runtimeClassRules()),
	}
}
