package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// customName is the name of a kind without a Go type, as Kubernetes publishes
// it: the group reversed, then version and kind.
func customName(kind schema.GroupVersionKind) string {
	return reversed(kind.Group) + "." + kind.Version + "." + kind.Kind
}

// IsCustom reports whether a resource has no Go type of its own.
func IsCustom(res *resource.Resource) bool {
	_, ok := res.New().(*unstructured.Unstructured)
	return ok
}

// object adds the model of a resource's kind and returns its name.
func (m *models) object(res *resource.Resource) string {
	kind := res.GroupVersionKind()
	if !IsCustom(res) {
		name := m.add(indirect(reflect.TypeOf(res.New())))
		m.is(name, kind)
		return name
	}
	name := customName(kind)
	if m.byName[name] == nil {
		m.byName[name] = &model{
			custom: res, uses: []string{m.add(reflect.TypeFor[metav1.ObjectMeta]())}, kinds: []schema.GroupVersionKind{kind},
		}
	}
	return name
}

// customSchema is a definition's schema with what every object has, down to
// publishedDepth. Without one every field passes.
func (m *models) customSchema(res *resource.Resource) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	if res.OpenAPI != nil {
		s = truncated(*res.OpenAPI(), publishedDepth)
		s.Properties, s.Extensions = maps.Clone(s.Properties), maps.Clone(s.Extensions) // shared with the resource
	} else {
		s.AddExtension(preserveExtension, true)
	}
	m.addTypeMeta(&s)
	s.SetProperty("metadata", *metadataProperty())
	if fields := selectableFields(res); fields != nil {
		s.AddExtension(selectableExtension, fields)
	}
	return s
}

func metadataProperty() *spec.Schema {
	return refTo(modelName(reflect.TypeFor[metav1.ObjectMeta]())).
		WithDescription("Standard object's metadata: name, namespace, labels, annotations and what the server keeps.")
}

// list adds the model of a resource's list and returns its name.
func (m *models) list(res *resource.Resource) string {
	kind := res.GroupVersion().WithKind(res.ListKind)
	if !IsCustom(res) {
		name := m.add(indirect(reflect.TypeOf(res.NewList())))
		m.is(name, kind)
		return name
	}
	name := customName(kind)
	if m.byName[name] != nil {
		return name
	}
	object, meta := m.object(res), m.add(reflect.TypeFor[metav1.ListMeta]())
	s := (&spec.Schema{}).Typed("object", "").WithRequired("items").
		WithDescription(res.ListKind+" is a list of "+res.Kind).
		SetProperty("items", *spec.ArrayProperty(refTo(object)).WithDescription("The " + res.Plural + " of this list.")).
		SetProperty("metadata", *refTo(meta).WithDescription("Standard list metadata: the version of the list, and how to go on."))
	m.addTypeMeta(s)
	m.byName[name] = &model{schema: *s, uses: []string{object, meta}, kinds: []schema.GroupVersionKind{kind}}
	return name
}

// addTypeMeta adds kind and apiVersion with the words of the built-in kinds.
func (m *models) addTypeMeta(s *spec.Schema) {
	docs := typeMetaDocs()
	for _, name := range []string{"apiVersion", "kind"} {
		s.SetProperty(name, *typed("string", "").WithDescription(docs[name]))
	}
}

func typeMetaDocs() map[string]string { return metav1.TypeMeta{}.SwaggerDoc() }

// selectableExtension names the fields that a fieldSelector may name.
const selectableExtension = "x-kubernetes-selectable-fields"

// selectableFields lists the fields that a fieldSelector may name (KEP-4358).
func selectableFields(res *resource.Resource) []any {
	var list []any
	for _, f := range res.Fields {
		for _, path := range f.Paths[:min(1, len(f.Paths))] {
			list = append(list, map[string]any{"fieldPath": strings.Join(path, ".")})
		}
	}
	return list
}

const preserveExtension = "x-kubernetes-preserve-unknown-fields"

// downgrade returns a schema without what version 2 cannot say. Where clients
// of version 2 take silence for a refusal (unknown fields beside known ones,
// null), nothing more is said about the value at all.
func downgrade(s spec.Schema) spec.Schema {
	s.OneOf, s.AnyOf, s.AllOf, s.Not = nil, nil, nil, nil
	s.Default = withoutEmpty(s.Default)
	preserve, _ := s.Extensions.GetBool(preserveExtension)
	if s.Nullable || preserve {
		s.Type, s.Items, s.Properties, s.AdditionalProperties, s.Nullable = nil, nil, nil, nil, false
	}
	if s.Items == nil && s.Type.Contains("array") {
		s.Type = nil
	}
	s.Required = slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { return s.Properties[name].Nullable })
	if s.Items != nil && s.Items.Schema != nil {
		item := downgrade(*s.Items.Schema)
		s.Items = &spec.SchemaOrArray{Schema: &item}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		value := downgrade(*s.AdditionalProperties.Schema)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &value}
	}
	if s.Properties != nil {
		properties := make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			properties[name] = downgrade(p)
		}
		s.Properties = properties
	}
	return s
}

// withoutEmpty drops defaults that say nothing but "empty", which version 2
// never had.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case int, int64, float64, bool:
		if reflect.ValueOf(v).IsZero() {
			return nil
		}
	}
	return value
}
