package openapi

import (
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Resolved returns the schema of a resource's kind in which every reference is replaced by
// what it refers to. A schema that contains itself is, where it repeats, one of any object.
// The result is new with every call for what was a reference, and must not be modified.
func Resolved(res *resource.Resource) *spec.Schema {
	m := newModels()
	return m.resolved(m.object(res), nil)
}

// resolved returns a model without references. within are the models around it.
func (m *models) resolved(name string, within []string) *spec.Schema {
	for _, around := range within {
		if around == name {
			open := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
			open.AddExtension(preserveExtension, true)
			return open
		}
	}
	entry := m.byName[name]
	if entry == nil {
		return &spec.Schema{}
	}
	if entry.leaf && len(entry.schema.OneOf) > 0 {
		// An integer or a string: expressions may treat it as either.
		s := entry.schema
		s.Extensions = maps.Clone(s.Extensions)
		s.AddExtension("x-kubernetes-int-or-string", true)
		return &s
	}
	s := m.schemaOf(entry)
	return m.withoutReferences(&s, append(within[:len(within):len(within)], name))
}

// withoutReferences returns s, or a copy of it if there is a reference in it.
func (m *models) withoutReferences(s *spec.Schema, within []string) *spec.Schema {
	if ref := s.Ref.String(); ref != "" {
		return m.resolved(strings.TrimPrefix(ref, definitions), within)
	}
	if len(s.AllOf) == 1 && s.AllOf[0].Ref.String() != "" {
		return m.withoutReferences(&s.AllOf[0], within)
	}
	resolved := *s
	if len(s.Properties) > 0 {
		resolved.Properties = make(map[string]spec.Schema, len(s.Properties))
		for name, property := range s.Properties {
			resolved.Properties[name] = *m.withoutReferences(&property, within)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		resolved.Items = &spec.SchemaOrArray{Schema: m.withoutReferences(s.Items.Schema, within)}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		resolved.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: m.withoutReferences(s.AdditionalProperties.Schema, within)}
	}
	return &resolved
}
