// Package dynamicresource defines the kinds of resource.k8s.io, dynamic
// resource allocation (KEP-4381).
package dynamicresource

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Resources returns the kinds of dynamic resource allocation,
// resource.k8s.io (KEP-4381).
func Resources() []*resource.Resource {
	gv := resourcev1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[resourcev1.DeviceClass, resourcev1.DeviceClassList](gv, define.Kind{
			Name: "DeviceClass", Plural: "deviceclasses", NamesBeforeFinalizers: true, NameRule: validate.AnyName, Cluster: true, ReturnDeleted: true,
		}, deviceClassRules()),
		define.Resource[resourcev1.ResourceClaim, resourcev1.ResourceClaimList](gv, define.Kind{
			Name: "ResourceClaim", Plural: "resourceclaims", NamesBeforeFinalizers: true, Status: true, StatusKeeps: resource.AllMetadata, NoGeneration: true, ReturnDeleted: true,
		}, resourceClaimRules()),
		define.Resource[resourcev1.ResourceClaimTemplate, resourcev1.ResourceClaimTemplateList](gv, define.Kind{
			Name: "ResourceClaimTemplate", Plural: "resourceclaimtemplates", NamesBeforeFinalizers: true, NoGeneration: true, ReturnDeleted: true,
		}, resourceClaimTemplateRules()),
		define.Resource[resourcev1.ResourceSlice, resourcev1.ResourceSliceList](gv, define.Kind{
			Name: "ResourceSlice", Plural: "resourceslices", NameRuleForNew: true, Cluster: true, ReturnDeleted: true,
			Fields: define.Fields("spec.nodeName", "spec.driver", "spec.pool.name"),
			FieldLabels: resource.FieldLabels{Unknown: func(name string) string {
				return fmt.Sprintf("field label not supported for %s: %s", gv.WithKind("ResourceSlice"), name)
			}},
		}, resourceSliceRules()),
		define.Resource[resourcev1.DeviceTaintRule, resourcev1.DeviceTaintRuleList](gv, define.Kind{
			Name: "DeviceTaintRule", Plural: "devicetaintrules", StoredIn: []string{"v1beta2"}, Cluster: true, Status: true, StatusKeeps: resource.AllMetadata,
			NameRuleForNew: true, ConditionalOnly: true,
		}, deviceTaintRuleRules()),
	}
}
