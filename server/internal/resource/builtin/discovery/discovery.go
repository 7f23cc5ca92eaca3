// Package discovery defines EndpointSlices.
package discovery

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, define.Kind{
			Name: "EndpointSlice", Plural: "endpointslices", NamesBeforeFinalizers: true,
		}, endpointSliceRules()),
	}
}
