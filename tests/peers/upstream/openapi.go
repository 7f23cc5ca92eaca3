package upstream

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// openAPI describes every kind as an object with any members. The generated
// schemas are not published, and only the tracking of field managers asks.
func openAPI(scheme *runtime.Scheme, served []resource) *common.OpenAPIV3Config {
	definitions := func(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		found := make(map[string]common.OpenAPIDefinition, len(served))
		for _, r := range served {
			found[util.GetCanonicalTypeName(r.newObject())] = common.OpenAPIDefinition{Schema: spec.Schema{
				SchemaProps: spec.SchemaProps{Type: []string{"object"}},
				VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{
					"x-kubernetes-preserve-unknown-fields": true,
				}},
			}}
		}
		return found
	}
	return genericserver.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(scheme))
}
