package builtin

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// dynamicResources are the kinds of dynamic resource allocation,
// resource.k8s.io (KEP-4381).
func dynamicResources() []*resource.Resource {
	gv := resourcev1.SchemeGroupVersion
	return []*resource.Resource{
		define[resourcev1.DeviceClass, resourcev1.DeviceClassList](gv, kind{
			Name: "DeviceClass", Plural: "deviceclasses", Cluster: true,
		}, deviceClassRules()),
		define[resourcev1.ResourceClaim, resourcev1.ResourceClaimList](gv, kind{
			Name: "ResourceClaim", Plural: "resourceclaims", Status: true, NoGeneration: true,
		}, resourceClaimRules()),
		define[resourcev1.ResourceClaimTemplate, resourcev1.ResourceClaimTemplateList](gv, kind{
			Name: "ResourceClaimTemplate", Plural: "resourceclaimtemplates", NoGeneration: true,
		}, resourceClaimTemplateRules()),
		define[resourcev1.ResourceSlice, resourcev1.ResourceSliceList](gv, kind{
			Name: "ResourceSlice", Plural: "resourceslices", Cluster: true,
			Fields: fields("spec.nodeName", "spec.driver"),
		}, resourceSliceRules()),
		define[resourcev1.DeviceTaintRule, resourcev1.DeviceTaintRuleList](gv, kind{
			Name: "DeviceTaintRule", Plural: "devicetaintrules", Cluster: true, Status: true,
		}, deviceTaintRuleRules()),
	}
}
