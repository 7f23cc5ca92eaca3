package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/internal/wirefield"
)

// structReader turns the fields of one struct type into properties.
type structReader struct {
	models *models
	name   string // of the model
	typ    reflect.Type
	docs   map[string]string
	schema spec.Schema
	uses   []string
}

// fields adds the fields of t, which is the model's own type or one that is
// embedded in it; docs describe them.
func (s *structReader) fields(t reflect.Type, docs map[string]string) {
	for _, f := range wirefield.Of(t) {
		switch {
		case f.Embedded:
			embedded := indirect(f.Go.Type)
			s.fields(embedded, docsOf(embedded))
			continue
		case !f.Tagged:
			continue
		}
		s.schema.SetProperty(f.Name, s.property(f, docs[f.Name]))
		if !s.isOptional(f) {
			s.schema.Required = append(s.schema.Required, f.Name)
		}
	}
}

// isOptional follows the rule of the published schemas: what the source marks
// as optional or required, and otherwise what may be left out of the JSON.
func (s *structReader) isOptional(f wirefield.Field) bool {
	if marked, ok := presence[s.name+"."+f.Name]; ok {
		return marked == optional
	}
	return f.OmitEmpty || f.OmitZero
}

func (s *structReader) property(f wirefield.Field, doc string) spec.Schema {
	p := s.value(f.Go.Type)
	p.Description = describe(doc, p.Enum)
	p.Default = s.defaultOf(f)
	s.addMergeStrategy(p, f.Name)
	if key := f.Go.Tag.Get("patchMergeKey"); key != "" {
		p.AddExtension("x-kubernetes-patch-merge-key", key)
	}
	if strategy := f.Go.Tag.Get("patchStrategy"); strategy != "" {
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
