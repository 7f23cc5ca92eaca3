package openapi

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// version is one of the two of OpenAPI. Paths and models are made in terms of the second,
// encoded for each, and put together as text: most of what a document says stands in many.
type version int

const (
	version2 version = iota
	version3
	versions
)

// members writes the members of a JSON object without its braces.
type members struct{ bytes.Buffer }

// add writes a member. The name needs no escapes.
func (m *members) add(name string, value []byte) {
	if m.Len() > 0 {
		m.WriteByte(',')
	}
	m.WriteString(`"` + name + `":`)
	m.Write(value)
}

// V3Document encodes the description of one group and version as JSON.
func (b *Builder) V3Document(of Group) (*Document, error) {
	g, err := b.group(of)
	if err != nil {
		return nil, err
	}
	paths, err := g.encodePaths(version3)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI of %s: %w", of.Version, err)
	}
	schemas, err := b.models.encodeAll(g.reached(), version3)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI of %s: %w", of.Version, err)
	}
	info, err := b.info.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return NewDocument(slices.Concat([]byte(`{"openapi":"3.0.0","info":`), info, []byte(`,"paths":{`), paths,
		[]byte(`},"components":{"schemas":{`), schemas, []byte(`}}}`)))
}

// encodePaths returns the group's paths as members of an object.
func (g *group) encodePaths(v version) ([]byte, error) {
	var all members
	typed := &spec.Paths{Paths: g.paths}
	converted := openapiconv.ConvertPaths(typed)
	for _, path := range slices.Sorted(maps.Keys(g.paths)) {
		encode := typed.Paths[path].MarshalJSON
		if v == version3 {
			encode = converted.Paths[path].MarshalJSON
		}
		text, err := encode()
		if err != nil {
			return nil, err
		}
		all.add(path, text)
	}
	for _, of := range g.custom {
		if all.Len() > 0 {
			all.WriteByte(',')
		}
		of.write(&all.Buffer, v)
	}
	return all.Bytes(), nil
}

// encodeAll returns models as members of an object.
func (m *models) encodeAll(names []string, v version) ([]byte, error) {
	var all members
	for _, name := range names {
		text, err := m.encoded(name, v)
		if err != nil {
			return nil, err
		}
		all.add(name, text)
	}
	return all.Bytes(), nil
}

// encoded returns a model in terms of a version. That of a custom kind is not kept: it is in
// one document of each version only.
func (m *models) encoded(name string, v version) ([]byte, error) {
	entry := m.byName[name]
	switch {
	case entry == nil:
		return nil, fmt.Errorf("a schema refers to %s, which is nowhere", name)
	case entry.custom != nil:
		return m.encodeCustom(name, v)
	case entry.text[v] != nil:
		return entry.text[v], nil
	}
	s := m.definition(name)
	if v == version2 {
		s = downgrade(s)
	} else {
		if entry.leaf && len(s.OneOf) > 0 {
			s.Type = nil // said better by the alternatives
		}
		s = *openapiconv.ConvertSchema(&s)
	}
	text, err := s.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	entry.text[v] = text
	return text, nil
}

// encodeCustom returns the model of a custom kind.
func (m *models) encodeCustom(name string, v version) ([]byte, error) {
	entry := m.byName[name]
	if v == version3 && entry.custom.SchemaJSON != nil {
		if text := entry.custom.SchemaJSON(); text != nil && isPublishable(text) {
			return m.publish(entry, text)
		}
	}
	s := m.definition(name)
	preserves, _ := s.Extensions.GetBool(preserveExtension)
	switch {
	case v == version3:
		s = *convertProperties(s)
	case preserves:
		s = anyObject(s.Extensions)
	default:
		s = downgrade(s)
	}
	return s.MarshalJSON()
}

// anyObject is the model, in version 2, of a custom kind whose objects may have any fields. It names none, not even those that
// all objects have: clients would take the others for unknown. So does kube-apiserver.
func anyObject(extensions spec.Extensions) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	s.Extensions = maps.Clone(extensions)
	delete(s.Extensions, preserveExtension)
	return s
}

// convertProperties returns a schema in which only direct properties are references
// in terms of version 3. ConvertSchema would take quadratic time: at each level it
// looks for references in everything below.
func convertProperties(s spec.Schema) *spec.Schema {
	s.Properties = maps.Clone(s.Properties)
	for name, p := range s.Properties {
		if p.Ref.String() != "" {
			s.Properties[name] = *openapiconv.ConvertSchema(&p)
		}
	}
	return &s
}
