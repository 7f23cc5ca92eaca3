package openapi

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Group is one group and version with everything that it serves.
type Group struct {
	Version   schema.GroupVersion
	Endpoints []Endpoint
}

// Builder makes documents. Several documents that are made one after the other
// are made faster by one builder, because they share models; what it has read
// is gone with it. Not safe for concurrent use.
type Builder struct {
	info   *spec.Info
	models *models
}

// NewBuilder returns a builder of documents that say they are of the given
// version of Kubernetes.
func NewBuilder(version string) *Builder {
	info := &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: version}}
	return &Builder{info: info, models: newModels()}
}

// V3 describes one group and version. The result shares its parts with what
// the builder makes later, and must not be modified.
func (b *Builder) V3(of Group) (*spec3.OpenAPI, error) {
	g := b.group(of)
	names := g.reached()
	components := &spec3.Components{Schemas: make(map[string]*spec.Schema, len(names))}
	for _, name := range names {
		s, err := g.component(name)
		if err != nil {
			return nil, err
		}
		components.Schemas[name] = s
	}
	return &spec3.OpenAPI{
		Version: "3.0.0", Info: b.info, Components: components,
		Paths: openapiconv.ConvertPaths(&spec.Paths{Paths: g.paths}),
	}, nil
}

// V2 describes all groups in one document. Like that of V3 it must not be
// modified.
func (b *Builder) V2(groups []Group) (*spec.Swagger, error) {
	s := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: b.info, Definitions: spec.Definitions{},
		Paths: &spec.Paths{Paths: make(map[string]spec.PathItem)},
	}}
	for _, of := range groups {
		g := b.group(of)
		maps.Copy(s.Paths.Paths, g.paths)
		for _, name := range g.reached() {
			if _, ok := s.Definitions[name]; ok {
				continue
			}
			if b.models.byName[name] == nil {
				return nil, fmt.Errorf("describe %s: a schema refers to %s, which is nowhere", of.Version, name)
			}
			s.Definitions[name] = downgrade(b.models.definition(name))
		}
	}
	return s, nil
}

func (b *Builder) group(of Group) *group {
	g := newGroup(b.models, of.Version)
	for _, e := range of.Endpoints {
		g.describe(e)
	}
	return g
}

// reached returns the names of all models that the group's paths lead to.
func (g *group) reached() []string {
	found := make(map[string]bool, len(g.used))
	for name := range g.used {
		g.reach(name, found)
	}
	return sortedNames(found)
}

// component returns a model in terms of version 3.
func (g *group) component(name string) (*spec.Schema, error) {
	entry := g.byName[name]
	if entry == nil {
		return nil, fmt.Errorf("describe %s: a schema refers to %s, which is nowhere", g.gv, name)
	}
	if entry.v3 == nil {
		s := g.definition(name)
		if entry.leaf && len(s.OneOf) > 0 {
			s.Type = nil // said better by the alternatives
		}
		if entry.custom {
			entry.v3 = convertProperties(s)
		} else {
			entry.v3 = openapiconv.ConvertSchema(&s)
		}
	}
	return entry.v3, nil
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
