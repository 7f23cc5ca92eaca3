package openapi

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// publishedDepth is how many levels of a definition's schema are published. What is
// deeper is published as allowing anything: clients that read the documents by
// recursion have limits, and no definition for people is nearly as deep.
const publishedDepth = 100

// truncated returns a schema without what is more than so many levels below it: the
// schema itself if there is nothing, and otherwise a copy.
func truncated(s spec.Schema, levels int) spec.Schema {
	if !deeperThan(&s, levels) {
		return s
	}
	return truncate(s, levels)
}

func truncate(s spec.Schema, levels int) spec.Schema {
	if levels == 0 {
		if !deeperThan(&s, 0) {
			return s
		}
		short := spec.Schema{SchemaProps: spec.SchemaProps{Description: s.Description}}
		short.AddExtension(preserveExtension, true)
		return short
	}
	below := func(s *spec.Schema) *spec.Schema {
		if s == nil {
			return nil
		}
		short := truncate(*s, levels-1)
		return &short
	}
	list := func(alternatives []spec.Schema) []spec.Schema {
		alternatives = slices.Clone(alternatives)
		for i := range alternatives {
			alternatives[i] = *below(&alternatives[i])
		}
		return alternatives
	}
	s.Properties = maps.Clone(s.Properties)
	for name, p := range s.Properties {
		s.Properties[name] = *below(&p)
	}
	if s.Items != nil {
		s.Items = &spec.SchemaOrArray{Schema: below(s.Items.Schema), Schemas: list(s.Items.Schemas)}
	}
	if s.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: s.AdditionalProperties.Allows, Schema: below(s.AdditionalProperties.Schema)}
	}
	s.AllOf, s.AnyOf, s.OneOf, s.Not = list(s.AllOf), list(s.AnyOf), list(s.OneOf), below(s.Not)
	return s
}

// deeperThan reports whether there is anything more than so many levels below a
// schema.
func deeperThan(s *spec.Schema, levels int) bool {
	for below := range children(s) {
		if levels == 0 || deeperThan(below, levels-1) {
			return true
		}
	}
	return false
}

// children yields the schemas that a schema of a definition consists of.
func children(s *spec.Schema) iter.Seq[*spec.Schema] {
	return func(yield func(*spec.Schema) bool) {
		for _, p := range s.Properties {
			if !yield(&p) {
				return
			}
		}
		var direct []*spec.Schema
		if s.Items != nil {
			direct = append(direct, s.Items.Schema)
			for i := range s.Items.Schemas {
				direct = append(direct, &s.Items.Schemas[i])
			}
		}
		if s.AdditionalProperties != nil {
			direct = append(direct, s.AdditionalProperties.Schema)
		}
		direct = append(direct, s.Not)
		for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
			for i := range list {
				direct = append(direct, &list[i])
			}
		}
		for _, below := range direct {
			if below != nil && !yield(below) {
				return
			}
		}
	}
}
