package discovery

import (
	"encoding/json"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// documents describe what is served: everything that discovery and OpenAPI answer
// with. They are made when the first client asks, and anew when the table has
// changed; parts that have not changed are kept.
type documents struct {
	all    []*resource.Resource // as the table had it
	groups []*group             // core first
	byName map[string]*group

	aggregated [2]aggregatedDocument // of the core group, of the others
	openAPI    openAPIDocuments
}

// group is one API group: its versions in order of preference.
type group struct {
	name     string
	versions []*groupVersion
}

// groupVersion is one version of a group with its resources. As long as the
// resources stay the same, it is kept when the table changes, together with what has
// been made of it.
type groupVersion struct {
	schema.GroupVersion
	resources []*resource.Resource

	discovery func() ([]byte, error) // one element of an aggregated document
	openAPI   openAPIDocument
}

type documentCache struct {
	mu      sync.Mutex
	current *documents
}

// get returns the documents of a table. The table never changes a slice that it has
// returned, so the identity of the slice shows whether the table has changed.
func (c *documentCache) get(all, createOnly []*resource.Resource) *documents {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.current; d != nil && len(d.all) == len(all) && (len(all) == 0 || &d.all[0] == &all[0]) {
		return d
	}
	d := &documents{all: all, byName: make(map[string]*group)}
	for _, res := range slices.Concat(all, createOnly) {
		d.add(res)
	}
	d.keep(c.current)
	c.current = d
	return d
}

// add enters a resource. The table's order is that of preference, so that the
// first version of a group that comes is the preferred one.
func (d *documents) add(res *resource.Resource) {
	g := d.byName[res.Group]
	if g == nil {
		g = &group{name: res.Group}
		d.byName[res.Group] = g
		d.groups = append(d.groups, g)
	}
	v := g.version(res.Version)
	if v == nil {
		v = newGroupVersion(res.GroupVersion())
		g.versions = append(g.versions, v)
	}
	v.resources = append(v.resources, res)
}

// keep takes over from before every version that has the same resources.
func (d *documents) keep(before *documents) {
	if before == nil {
		return
	}
	for _, g := range d.groups {
		for i, v := range g.versions {
			if old := before.version(v.GroupVersion); old != nil && slices.Equal(old.resources, v.resources) {
				g.versions[i] = old
			}
		}
	}
}

func newGroupVersion(gv schema.GroupVersion) *groupVersion {
	v := &groupVersion{GroupVersion: gv}
	v.discovery = sync.OnceValues(func() ([]byte, error) { return json.Marshal(aggregatedVersion(v)) })
	return v
}

func (g *group) version(name string) *groupVersion {
	i := slices.IndexFunc(g.versions, func(v *groupVersion) bool { return v.Version == name })
	if i < 0 {
		return nil
	}
	return g.versions[i]
}

// version returns one version of a group, or nil.
func (d *documents) version(gv schema.GroupVersion) *groupVersion {
	if g := d.byName[gv.Group]; g != nil {
		return g.version(gv.Version)
	}
	return nil
}

func (h *Handler) described() *documents {
	return h.documents.get(h.config.Resources.All(), h.config.CreateOnly)
}
