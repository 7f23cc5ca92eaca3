package openapi

import (
	"encoding/json"
	"slices"

	"k8s.io/kube-openapi/pkg/openapiconv"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// ownProperties are the properties that every object has, in place of what a definition says
// of them.
var ownProperties = []string{"apiVersion", "kind", "metadata"}

// publish returns the schema of a definition, in JSON, as the model of its kind in version 3.
// Nothing of it is decoded: definitions are large, and many.
func (m *models) publish(entry *model, text []byte) ([]byte, error) {
	var all, properties members
	s := jsonscan.Scanner{Data: text}
	err := eachMember(&s, func(name string) error {
		if name == "properties" {
			return eachMember(&s, func(name string) error {
				return copyMember(&s, &properties, name, slices.Contains(ownProperties, name))
			})
		}
		return copyMember(&s, &all, name, name == kindExtension || name == selectableExtension)
	})
	if err != nil {
		return nil, err
	}
	docs := typeMetaDocs()
	for _, name := range []string{"apiVersion", "kind"} {
		value, err := typed("string", "").WithDescription(docs[name]).MarshalJSON()
		if err != nil {
			return nil, err
		}
		properties.add(name, value)
	}
	value, err := openapiconv.ConvertSchema(metadataProperty()).MarshalJSON()
	if err != nil {
		return nil, err
	}
	properties.add("metadata", value)
	all.add("properties", slices.Concat([]byte("{"), properties.Bytes(), []byte("}")))
	extensions := map[string]any{kindExtension: kindValues(entry.kinds)}
	if fields := selectableFields(entry.custom); fields != nil {
		extensions[selectableExtension] = fields
	}
	for _, name := range []string{kindExtension, selectableExtension} {
		if extensions[name] == nil {
			continue
		}
		value, err := json.Marshal(extensions[name])
		if err != nil {
			return nil, err
		}
		all.add(name, value)
	}
	return slices.Concat([]byte("{"), all.Bytes(), []byte("}")), nil
}

// eachMember calls visit for the members of an object. visit consumes the value.
func eachMember(s *jsonscan.Scanner, visit func(name string) error) error {
	if err := s.Expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil || !ok {
			return err
		}
		name, err := key.Value()
		if err == nil {
			err = visit(name)
		}
		if err != nil {
			return err
		}
	}
}

// copyMember consumes a value, and writes it unless it is left out.
func copyMember(s *jsonscan.Scanner, to *members, name string, leftOut bool) error {
	value, err := s.Skip()
	if err == nil && !leftOut {
		to.add(name, value)
	}
	return err
}

// isPublishable reports whether the schema of a definition, in JSON, can be published as it is
// stored: it has only what structural schemas have, and not more than publishedDepth levels.
// Nearly all have. Names with escapes are left to those that decode them.
func isPublishable(text []byte) bool {
	s := &schemaScanner{Scanner: jsonscan.Scanner{Data: text}}
	return s.schema(publishedDepth) && s.AtEnd()
}

type schemaScanner struct{ jsonscan.Scanner }

// object consumes an object and calls member for each name, which consumes the value. It
// returns false if a call does, or if there is no object.
func (s *schemaScanner) object(member func(name string) bool) bool {
	if !s.Take('{') {
		return false
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil {
			return false
		}
		if !ok {
			return true
		}
		if key.Escaped || !member(string(key.Raw())) {
			return false
		}
	}
}

// schema consumes a schema with at most so many levels below it.
func (s *schemaScanner) schema(levels int) bool {
	return s.object(func(name string) bool {
		switch name {
		case "properties":
			return s.object(func(string) bool { return s.below(levels) })
		case "items", "not":
			return s.below(levels)
		case "additionalProperties":
			return s.Literal("true") || s.Literal("false") || s.below(levels)
		case "allOf", "anyOf", "oneOf":
			return s.list(levels)
		case "x-kubernetes-preserve-unknown-fields":
			return s.Literal("true")
		}
		if !slices.Contains(structuralFields, name) {
			return false
		}
		_, err := s.Skip()
		return err == nil
	})
}

func (s *schemaScanner) below(levels int) bool { return levels > 0 && s.schema(levels-1) }

// list consumes an array of schemas.
func (s *schemaScanner) list(levels int) bool {
	if !s.Take('[') {
		return false
	}
	for first := true; !s.Take(']'); first = false {
		if !first && !s.Take(',') || !s.below(levels) {
			return false
		}
	}
	return true
}

// structuralFields are the fields of a structural schema that hold no schemas.
var structuralFields = []string{
	"description", "type", "format", "title", "default", "nullable", "enum", "required", "example", "externalDocs",
	"maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength", "pattern",
	"maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties",
	"x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
	"x-kubernetes-map-type", "x-kubernetes-validations",
}
