// Package node defines RuntimeClasses.
package node

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[nodev1.RuntimeClass, nodev1.RuntimeClassList](nodev1.SchemeGroupVersion, define.Kind{
			Name: "RuntimeClass", Plural: "runtimeclasses", Cluster: true, NoGeneration: true, ConditionalOnly: true, UpsertOnUpdate: true,
		}, runtimeClassRules()),
	}
}
