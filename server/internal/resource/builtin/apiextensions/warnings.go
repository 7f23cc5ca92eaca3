package apiextensions

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
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
	before := schemaWarnings(old)
	return slices.DeleteFunc(found, func(text string) bool { return slices.Contains(before, text) })
}

func schemaWarnings(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var formats, sets []string
	add := func(list *[]string, text string) {
		if !slices.Contains(*list, text) {
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
			add(&sets, fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", item))
		}
	})
	slices.Sort(sets)
	return append(formats, sets...)
}
