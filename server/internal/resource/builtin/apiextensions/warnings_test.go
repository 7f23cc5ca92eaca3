package apiextensions

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestManyFormats: a schema of many formats is warned of in linear time. When each warning was compared with each, this took
// an hour, beyond the time of all tests of the package.
func TestManyFormats(t *testing.T) {
	const many = 300_000
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range many {
		schema.Properties[fmt.Sprint("p", i)] = apiextensionsv1.JSONSchemaProps{Type: "string", Format: fmt.Sprint("format", i)}
	}
	schema.Properties["again"] = apiextensionsv1.JSONSchemaProps{Type: "string", Format: "format7"}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}}}
	if n := len(warnings(crd, nil)); n != many {
		t.Errorf("%d warnings of a new definition, want %d", n, many)
	}
	if n := len(warnings(crd, crd)); n != 0 {
		t.Errorf("%d warnings are repeated", n)
	}
}
