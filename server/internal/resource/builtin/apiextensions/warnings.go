package apiextensions

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// warnings says what of a definition's schemas has no effect: formats that are not
// known, and sets of objects or lists. What the definition had before is not
// repeated.
func warnings(crd, old *apiextensionsv1.CustomResourceDefinition) []string {
	found := schemaWarnings(crd)
	if len(found) == 0 {
		return nil
	}
	if old != nil {
		for text := range schemaWarnings(old) {
			delete(found, text)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func schemaWarnings(crd *apiextensionsv1.CustomResourceDefinition) map[string]bool {
	found := map[string]bool{}
	for i := range crd.Spec.Versions {
		schema := crd.Spec.Versions[i].Schema
		if schema == nil || schema.OpenAPIV3Schema == nil {
			continue
		}
		internal := &apiextensions.JSONSchemaProps{}
		// The library's conversion shares memory with its source, which is only read.
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema.OpenAPIV3Schema, internal, nil); err != nil {
			continue // validation has refused it
		}
		apiextensionsvalidation.SchemaHas(internal, func(s *apiextensions.JSONSchemaProps) bool {
			addWarnings(found, s)
			return false
		})
	}
	return found
}

// addWarnings adds those about one field.
func addWarnings(found map[string]bool, s *apiextensions.JSONSchemaProps) {
	if s.Format != "" {
		asked := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
		for _, format := range validation.GetUnrecognizedFormats(asked, environment.DefaultCompatibilityVersion()) {
			found[fmt.Sprintf("unrecognized format %q", format)] = true
		}
	}
	if s.XListType == nil || *s.XListType != "set" || s.Items == nil || s.Items.Schema == nil {
		return
	}
	if item := s.Items.Schema.Type; item == "object" || item == "array" {
		found[fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", item)] = true
	}
}
