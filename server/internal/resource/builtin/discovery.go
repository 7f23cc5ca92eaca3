package builtin

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func discoveryResources() []*resource.Resource {
	return []*resource.Resource{
		define[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, kind{
			Name: "EndpointSlice", Plural: "endpointslices",
		}, endpointSliceRules()),
	}
}
