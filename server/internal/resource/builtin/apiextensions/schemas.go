package apiextensions

import (
	"bytes"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// eachSchema calls visit with each schema of a definition, those inside behind the one that has
// them. visit must not change them.
func eachSchema(crd *apiextensionsv1.CustomResourceDefinition, visit func(*apiextensionsv1.JSONSchemaProps)) {
	walkDefinition(crd, schemaWalk{visit: visit})
}

// dropUnreadItems drops items that are neither a schema nor a list of schemas, of which the stored
// definition has none.
func dropUnreadItems(crd *apiextensionsv1.CustomResourceDefinition) {
	found := false
	isUnread := func(i *apiextensionsv1.JSONSchemaPropsOrArray) bool {
		return i != nil && i.Schema == nil && len(i.JSONSchemas) == 0
	}
	eachSchema(crd, func(s *apiextensionsv1.JSONSchemaProps) { found = found || isUnread(s.Items) })
	if !found {
		return
	}
	walkDefinition(crd, schemaWalk{changes: true, visit: func(s *apiextensionsv1.JSONSchemaProps) {
		if isUnread(s.Items) {
			s.Items = nil
		}
	}})
}

// writeJSONAnew writes the default values, examples and enumerations of schemas as kube-apiserver
// does, which keeps their values and not their bytes: a client that sends a definition back with
// other spaces, or with their members in another order, changes nothing.
func writeJSONAnew(crd *apiextensionsv1.CustomResourceDefinition) {
	changed := false
	eachSchema(crd, func(s *apiextensionsv1.JSONSchemaProps) {
		eachJSON(s, func(raw *apiextensionsv1.JSON) { changed = changed || !bytes.Equal(writtenAnew(raw.Raw), raw.Raw) })
	})
	if !changed {
		return
	}
	crd.Spec = *crd.Spec.DeepCopy() // it may be another definition's, too
	walkDefinition(crd, schemaWalk{changes: true, visit: func(s *apiextensionsv1.JSONSchemaProps) {
		eachJSON(s, func(raw *apiextensionsv1.JSON) { raw.Raw = writtenAnew(raw.Raw) })
	}})
}

// eachJSON calls visit with the JSON of a schema, without that of the schemas inside.
func eachJSON(s *apiextensionsv1.JSONSchemaProps, visit func(raw *apiextensionsv1.JSON)) {
	for _, raw := range []*apiextensionsv1.JSON{s.Default, s.Example} {
		if raw != nil {
			visit(raw)
		}
	}
	for i := range s.Enum {
		visit(&s.Enum[i])
	}
}

// writtenAnew returns JSON in the one way in which a value is written. What cannot be decoded stays,
// for validation to refuse.
func writtenAnew(raw []byte) []byte {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
		return raw
	}
	anew, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return anew
}

func walkDefinition(crd *apiextensionsv1.CustomResourceDefinition, w schemaWalk) {
	for i := range crd.Spec.Versions {
		if schema := crd.Spec.Versions[i].Schema; schema != nil {
			w.schema(schema.OpenAPIV3Schema)
		}
	}
}

// schemaWalk visits schemas. changes: visit changes them.
type schemaWalk struct {
	visit   func(*apiextensionsv1.JSONSchemaProps)
	changes bool
}

func (w schemaWalk) schema(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	w.visit(s)
	if s.Items != nil {
		w.schema(s.Items.Schema)
		w.list(s.Items.JSONSchemas)
	}
	w.list(s.AllOf)
	w.list(s.AnyOf)
	w.list(s.OneOf)
	w.schema(s.Not)
	w.named(s.Properties)
	if s.AdditionalProperties != nil {
		w.schema(s.AdditionalProperties.Schema)
	}
	w.named(s.PatternProperties)
	if s.AdditionalItems != nil {
		w.schema(s.AdditionalItems.Schema)
	}
	w.named(s.Definitions)
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		w.schema(s.Dependencies[name].Schema)
	}
}

func (w schemaWalk) list(list []apiextensionsv1.JSONSchemaProps) {
	for i := range list {
		w.schema(&list[i])
	}
}

func (w schemaWalk) named(schemas map[string]apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		s := schemas[name]
		w.schema(&s)
		if w.changes {
			schemas[name] = s
		}
	}
}
