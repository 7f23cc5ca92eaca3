package discovery

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// documents describe what is served: everything that discovery and OpenAPI answer
// with. They are made when the first client asks, and anew when the table has
// changed; parts that have not changed are kept.
type documents struct {
	all    []*resource.Resource   // as the table had it
	remote *aggregation.Published // what other servers serve
	groups []*group               // core first, then in the order of aggregated discovery
	plain  []*group               // the others in the order of plain discovery
	byName map[string]*group

	aggregated [2]aggregatedDocument // of the core group, of the others
	openAPI    openAPIDocuments
	builtin    *builtinPart
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
	remote    *aggregation.Version // nil: this server serves it

	discovery func() ([]byte, error) // one element of an aggregated document
	openAPI   *openAPIDocument
	part      openAPIPart // of version 2, if there are only custom kinds
}

type documentCache struct {
	mu      sync.Mutex
	current *documents
}

// get returns the documents of a table. The table never changes a slice that it has
// returned, so the identity of the slice shows whether the table has changed.
func (c *documentCache) get(all, unstored []*resource.Resource, remote *aggregation.Published) *documents {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.current; d != nil && d.remote == remote && len(d.all) == len(all) && (len(all) == 0 || &d.all[0] == &all[0]) {
		return d
	}
	d := &documents{all: all, remote: remote, byName: make(map[string]*group)}
	for _, res := range slices.Concat(all, unstored) {
		d.add(res)
	}
	d.addRemote()
	d.sort()
	d.keep(c.current)
	c.current = d
	return d
}

// add enters a resource. Those of a version are in the order of their names, as in the table.
func (d *documents) add(res *resource.Resource) {
	g := d.group(res.Group)
	v := g.version(res.Version)
	if v == nil {
		v = newGroupVersion(res.GroupVersion())
		g.versions = append(g.versions, v)
	}
	at, _ := slices.BinarySearchFunc(v.resources, res.Plural, func(r *resource.Resource, name string) int { return strings.Compare(r.Plural, name) })
	v.resources = slices.Insert(v.resources, at, res)
}

// group returns a group, which it adds if there is none of the name.
func (d *documents) group(name string) *group {
	g := d.byName[name]
	if g == nil {
		g = &group{name: name}
		d.byName[name] = g
		d.groups = append(d.groups, g)
	}
	return g
}

// keep takes over from before every version that has the same resources, and of others what
// another server of this process has made.
func (d *documents) keep(before *documents) {
	var builtin []*groupVersion
	for _, g := range d.groups {
		for i, v := range g.versions {
			if old := before.version(v.GroupVersion); old != nil && slices.Equal(old.resources, v.resources) && reflect.DeepEqual(old.remote, v.remote) {
				g.versions[i] = old
			} else if v.remote == nil {
				v.openAPI = shared.of(v)
			}
			if v := g.versions[i]; v.remote == nil && !v.isCustom() {
				builtin = append(builtin, v)
			}
		}
	}
	if before != nil && slices.Equal(before.builtin.of, builtin) {
		d.builtin = before.builtin
		return
	}
	d.builtin = &builtinPart{of: builtin}
}

// isCustom reports whether the version has only kinds without Go types.
func (v *groupVersion) isCustom() bool {
	return !slices.ContainsFunc(v.resources, func(res *resource.Resource) bool { return !openapi.IsCustom(res) })
}

func newGroupVersion(gv schema.GroupVersion) *groupVersion {
	v := &groupVersion{GroupVersion: gv, openAPI: &openAPIDocument{}}
	v.discovery = sync.OnceValues(func() ([]byte, error) { return json.Marshal(aggregatedVersion(v)) })
	return v
}

// addRemote enters what other servers serve, and this one does not.
func (d *documents) addRemote() {
	if d.remote == nil {
		return
	}
	for i := range d.remote.Versions {
		remote := &d.remote.Versions[i]
		g := d.group(remote.Group)
		if g.version(remote.Version) != nil {
			continue // this server's own
		}
		v := newGroupVersion(remote.GroupVersion)
		v.remote = remote
		g.versions = append(g.versions, v)
	}
}

func (g *group) version(name string) *groupVersion {
	i := slices.IndexFunc(g.versions, func(v *groupVersion) bool { return v.Version == name })
	if i < 0 {
		return nil
	}
	return g.versions[i]
}

// version returns one version of a group, or nil. d may be nil.
func (d *documents) version(gv schema.GroupVersion) *groupVersion {
	if d == nil {
		return nil
	}
	if g := d.byName[gv.Group]; g != nil {
		return g.version(gv.Version)
	}
	return nil
}

func (h *Handler) described() *documents {
	var remote *aggregation.Published
	if h.config.Aggregated != nil {
		remote = h.config.Aggregated()
	}
	return h.documents.get(h.config.Resources.All(), h.config.Unstored, remote)
}
