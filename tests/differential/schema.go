package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema is what an OpenAPI document says of a value. Schemas that refer to themselves, as
// JSONSchemaProps does, are the same pointer again.
type schema struct {
	name       string // of the definition; empty if it has none
	kind       valueKind
	enum       []any
	fields     map[string]*schema
	required   []string
	items      *schema // of an array
	values     *schema // of a map
	fieldNames []string
}

// valueKind is the type of a value, as an odd value has to know it.
type valueKind string

// The types.
const (
	objectValue   valueKind = "object"
	mapValue      valueKind = "map"
	arrayValue    valueKind = "array"
	stringValue   valueKind = "string"
	integerValue  valueKind = "integer"
	numberValue   valueKind = "number"
	booleanValue  valueKind = "boolean"
	quantityValue valueKind = "quantity"
	intOrString   valueKind = "int-or-string"
	timeValue     valueKind = "time"
	bytesValue    valueKind = "bytes"
	anyValue      valueKind = "any" // whatever JSON there is
)

// document is what is read of an OpenAPI v3 document.
type document struct {
	Components struct {
		Schemas map[string]*definition `json:"schemas"`
	} `json:"components"`

	resolved map[string]*schema
}

// definition is a schema as it stands in a document.
type definition struct {
	Ref        string                 `json:"$ref,omitempty"`
	AllOf      []*definition          `json:"allOf,omitempty"`
	Type       string                 `json:"type,omitempty"`
	Format     string                 `json:"format,omitempty"`
	Enum       []any                  `json:"enum,omitempty"`
	Properties map[string]*definition `json:"properties,omitempty"`
	Required   []string               `json:"required,omitempty"`
	Items      *definition            `json:"items,omitempty"`
	Additional *definition            `json:"additionalProperties,omitempty"`
	Kinds      []groupVersionKind     `json:"x-kubernetes-group-version-kind,omitempty"`
}

type groupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

const schemaPrefix = "#/components/schemas/"

func parseDocument(text []byte) (*document, error) {
	d := &document{resolved: map[string]*schema{}}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("an OpenAPI document: %w", err)
	}
	return d, nil
}

// schemaOf returns the schema of a kind.
func (d *document) schemaOf(gvk groupVersionKind) *schema {
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if slices.Contains(d.Components.Schemas[name].Kinds, gvk) {
			return d.named(name)
		}
	}
	return nil
}

func (d *document) named(name string) *schema {
	if s, ok := d.resolved[name]; ok {
		return s
	}
	s := &schema{name: name}
	d.resolved[name] = s
	if def := d.Components.Schemas[name]; def != nil {
		d.fill(s, def)
	} else {
		s.kind = anyValue
	}
	return s
}

func (d *document) resolve(def *definition) *schema {
	if def == nil {
		return &schema{kind: anyValue}
	}
	if def.Ref != "" {
		return d.named(strings.TrimPrefix(def.Ref, schemaPrefix))
	}
	if len(def.AllOf) == 1 && def.AllOf[0].Ref != "" {
		return d.resolve(def.AllOf[0])
	}
	s := new(schema)
	d.fill(s, def)
	return s
}

func (d *document) fill(s *schema, def *definition) {
	s.enum, s.required = def.Enum, def.Required
	s.kind = kindOf(def, s.name)
	switch s.kind {
	case objectValue:
		s.fields = map[string]*schema{}
		for name, field := range def.Properties {
			s.fields[name] = d.resolve(field)
		}
		s.fieldNames = slices.Sorted(maps.Keys(s.fields))
	case arrayValue:
		s.items = d.resolve(def.Items)
	case mapValue:
		s.values = d.resolve(def.Additional)
	}
}

func kindOf(def *definition, name string) valueKind {
	switch {
	case strings.HasSuffix(name, ".resource.Quantity"):
		return quantityValue
	case def.Format == "int-or-string", strings.HasSuffix(name, ".IntOrString"):
		return intOrString
	case def.Format == "date-time":
		return timeValue
	case def.Format == "byte":
		return bytesValue
	case len(def.Properties) > 0:
		return objectValue
	case def.Type == "object" && def.Additional != nil:
		return mapValue
	}
	switch kind := valueKind(def.Type); kind {
	case arrayValue, stringValue, integerValue, numberValue, booleanValue:
		return kind
	default:
		return anyValue
	}
}
