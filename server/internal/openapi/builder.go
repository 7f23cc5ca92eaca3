package openapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

func (b *Builder) group(of Group) (*group, error) {
	g := newGroup(b.models, of.Version)
	for _, e := range of.Endpoints {
		if err := g.describe(e); err != nil {
			return nil, fmt.Errorf("describe %s: %w", of.Version, err)
		}
	}
	return g, nil
}

// reached returns the names of all models that the group's paths lead to.
func (g *group) reached() []string {
	found := make(map[string]bool, len(g.used))
	for name := range g.used {
		g.reach(name, found)
	}
	return sortedNames(found)
}
