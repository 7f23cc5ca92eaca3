package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// structReader turns the fields of one struct type into properties.
type structReader struct {
	models *models
	name   string // of the model
	docs   map[string]string
	merge  *smd.Map // nil if server-side apply does not know the type
	schema spec.Schema
	uses   []string
}

// fields adds the fields of t, which is the model's own type or one that is
// embedded in it; docs describe them.
func (s *structReader) fields(t reflect.Type, docs map[string]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous || !tagged && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			embedded := indirect(f.Type)
			s.fields(embedded, docsOf(embedded))
			continue
		}
		s.schema.SetProperty(name, s.property(f, name, options, docs[name]))
		if !s.isOptional(name, options) {
			s.schema.Required = append(s.schema.Required, name)
		}
	}
}

// isOptional follows the rule of the published schemas: what the source marks
// as optional or required, and otherwise what may be left out of the JSON.
func (s *structReader) isOptional(field, options string) bool {
	if marked, ok := presence[s.name+"."+field]; ok {
		return marked == optional
	}
	return strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}

func (s *structReader) property(f reflect.StructField, name, options, doc string) spec.Schema {
	p := s.value(f.Type)
	p.Description = describe(doc, p.Enum)
	switch field, ok := s.mergeField(name); {
	case ok:
		p.Default = defaultOf(field.Default)
		addListType(p, field.Type.Inlined)
		if r := field.Type.ElementRelationship; r != nil && *r == smd.Atomic {
			p.AddExtension("x-kubernetes-map-type", "atomic")
		}
	default:
		if !strings.Contains(options, "omitempty") || f.Type.Kind() == reflect.Struct {
			p.Default = zero(f.Type)
		}
		if keys := listKeys[s.name+"."+name]; keys != nil {
			addListType(p, smd.Atom{List: &smd.List{ElementRelationship: smd.Associative, Keys: keys}})
		}
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		p.AddExtension("x-kubernetes-patch-merge-key", key)
	}
	if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
		p.AddExtension("x-kubernetes-patch-strategy", strategy)
	}
	return *p
}

// value returns the schema of a type's JSON form: a new one, whose members may
// be set.
func (s *structReader) value(t reflect.Type) *spec.Schema {
	t = indirect(t)
	switch t.Kind() {
	case reflect.Struct:
		name := s.models.add(t)
		s.uses = append(s.uses, name)
		return refTo(name)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return typed("string", "byte")
		}
		return spec.ArrayProperty(s.element(t.Elem()))
	case reflect.Map:
		p := typed("object", "")
		p.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: s.element(t.Elem())}
		return p
	}
	p := scalar(t.Kind())
	p.Enum = s.models.enums[t]
	return p
}

// mergeField returns what server-side apply knows of a field.
func (s *structReader) mergeField(name string) (smd.StructField, bool) {
	if s.merge == nil {
		return smd.StructField{}, false
	}
	return s.merge.FindField(name)
}

// listKeys are the keys of lists in types that the apply schema of the
// built-in kinds leaves out. By model name and field.
var listKeys = map[string][]string{
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus.conditions": {"type"},
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps.x-kubernetes-validations":  {"rule"},
}

// element is value for what lists and maps hold.
func (s *structReader) element(t reflect.Type) *spec.Schema {
	p := s.value(t)
	p.Default = zero(t)
	return p
}

// zero returns the default of a value that is always there: what a client sees
// that does not set it. nil if there is none.
func zero(t reflect.Type) any {
	switch t.Kind() {
	case reflect.Struct:
		if _, isLeaf := reflect.Zero(t).Interface().(leaf); !isLeaf {
			return map[string]any{}
		}
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint, reflect.Uint64:
		return 0
	}
	return nil
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func typed(kind, format string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{kind}, Format: format}}
}

func scalar(kind reflect.Kind) *spec.Schema {
	switch kind {
	case reflect.Bool:
		return typed("boolean", "")
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return typed("integer", "int32")
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return typed("integer", "int64")
	case reflect.Float32:
		return typed("number", "float")
	case reflect.Float64:
		return typed("number", "double")
	case reflect.Interface:
		return &spec.Schema{}
	}
	return typed("string", "")
}

// leaf is a struct type that is written as something else than an object. Its
// methods are apimachinery's convention.
type leaf interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// leafSchema returns the schema of a type that says itself how it is written.
func leafSchema(t reflect.Type) (spec.Schema, bool) {
	l, ok := reflect.Zero(t).Interface().(leaf)
	if !ok {
		return spec.Schema{}, false
	}
	s := spec.Schema{SchemaProps: spec.SchemaProps{
		Type: l.OpenAPISchemaType(), Format: l.OpenAPISchemaFormat(), Description: leafDocs[t.Name()],
	}}
	if one, ok := l.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
		// Version 2 cannot say it, and keeps the type instead.
		for _, kind := range one.OpenAPIV3OneOfTypes() {
			s.OneOf = append(s.OneOf, *typed(kind, ""))
		}
	}
	return s, true
}

// leafDocs describe types that have no descriptions of their own.
var leafDocs = map[string]string{
	"Time":                         "A moment as in RFC 3339, to the second: 2006-01-02T15:04:05Z.",
	"MicroTime":                    "A moment as in RFC 3339, to the microsecond: 2006-01-02T15:04:05.000000Z.",
	"Duration":                     "A span of time, as Go writes it: 1h30m.",
	"Quantity":                     "A number with an optional suffix: decimal (n, u, m, k, M, G, T, P, E), binary (Ki, Mi, Gi, Ti, Pi, Ei) or a decimal exponent (e3). 0.5 and 500m are equal.",
	"IntOrString":                  "Either a number or a string.",
	"JSON":                         "Any JSON value: a boolean, a number, a string, null, an array or an object.",
	"JSONSchemaPropsOrArray":       "One schema, or an array of schemas.",
	"JSONSchemaPropsOrBool":        "One schema, or a boolean.",
	"JSONSchemaPropsOrStringArray": "One schema, or an array of strings.",
}

// addListType says how the elements of a list are told apart, in the words of
// the extensions that KEP-555 defines.
func addListType(p *spec.Schema, atom smd.Atom) {
	switch list := atom.List; {
	case list == nil || p.Items == nil:
	case list.ElementRelationship == smd.Atomic:
		p.AddExtension("x-kubernetes-list-type", "atomic")
	case len(list.Keys) > 0:
		p.AddExtension("x-kubernetes-list-type", "map")
		p.AddExtension("x-kubernetes-list-map-keys", slices.Clone(list.Keys))
	default:
		p.AddExtension("x-kubernetes-list-type", "set")
	}
	if atom.Map != nil && p.AdditionalProperties != nil && atom.Map.ElementRelationship == smd.Atomic {
		p.AddExtension("x-kubernetes-map-type", "atomic")
	}
}

// defaultOf returns a default in the types of JSON.
func defaultOf(value any) any {
	if m, ok := value.(map[any]any); ok {
		converted := make(map[string]any, len(m))
		for k, v := range m {
			if name, ok := k.(string); ok {
				converted[name] = defaultOf(v)
			}
		}
		return converted
	}
	return value
}

// unionsOf describes the fields of which one excludes the others.
func unionsOf(m *smd.Map) []any {
	if m == nil {
		return nil
	}
	var unions []any
	for _, u := range m.Unions {
		fields := make(map[string]any, len(u.Fields))
		for _, f := range u.Fields {
			fields[f.FieldName] = f.DiscriminatorValue
		}
		union := map[string]any{"fields-to-discriminateBy": fields}
		if u.Discriminator != nil {
			union["discriminator"] = *u.Discriminator
		}
		unions = append(unions, union)
	}
	return unions
}

// describe returns a description with the values that are allowed, for clients
// that show nothing else.
func describe(doc string, values []any) string {
	doc = strings.TrimSpace(doc)
	if len(values) == 0 {
		return doc
	}
	var b strings.Builder
	b.WriteString(doc + "\n\nPossible enum values:")
	for _, v := range values {
		fmt.Fprintf(&b, "\n - `%q`", v)
	}
	return b.String()
}

// sortedNames returns the keys of a set in order.
func sortedNames(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
