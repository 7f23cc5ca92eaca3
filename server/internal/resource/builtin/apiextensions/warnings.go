package apiextensions

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// warnings says what of a definition's schemas has no effect: formats that are not
// known, as they come, and then sets of objects or lists. What the definition had before is not
// repeated.
func warnings(crd, old *apiextensionsv1.CustomResourceDefinition) []string {
	found := schemaWarnings(crd)
	if len(found) == 0 || old == nil {
		return found
	}
	before := sets.New(schemaWarnings(old)...)
	return slices.DeleteFunc(found, before.Has)
}

func schemaWarnings(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var formats, lists []string
	said := sets.New[string]() // a schema may have a format for each of its 80,000 properties
	add := func(list *[]string, text string) {
		if !said.Has(text) {
			said.Insert(text)
			*list = append(*list, text)
		}
	}
	eachSchema(crd, func(s *apiextensionsv1.JSONSchemaProps) {
		if s.Format != "" {
			asked := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
			for _, format := range validation.GetUnrecognizedFormats(asked, environment.DefaultCompatibilityVersion()) {
				add(&formats, fmt.Sprintf("unrecognized format %q", format))
			}
		}
		if s.XListType == nil || *s.XListType != "set" || s.Items == nil || s.Items.Schema == nil {
			return
		}
		if item := s.Items.Schema.Type; item == "object" || item == "array" {
			add(&lists, fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", item))
		}
	})
	slices.Sort(lists)
	return append(formats, lists...)
}
