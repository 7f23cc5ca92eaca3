package discovery

import (
	"cmp"
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
	groups []*group               // core first
	byName map[string]*group

	aggregated [2]aggregatedDocument // of the core group, of the others
	openAPI    openAPIDocuments
	builtin    *builtinPart
}

// group is one API group: its versions in order of preference.
type group struct {
	name     string
	versions []*groupVersion
	// remotePriority is the priority of a group that only other servers serve; 0 for any
	// other.
	remotePriority int32
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
func (c *documentCache) get(all, createOnly []*resource.Resource, remote *aggregation.Published) *documents {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.current; d != nil && d.remote == remote && len(d.all) == len(all) && (len(all) == 0 || &d.all[0] == &all[0]) {
		return d
	}
	d := &documents{all: all, remote: remote, byName: make(map[string]*group)}
	for _, res := range slices.Concat(all, createOnly) {
		d.add(res)
	}
	d.addRemote()
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

// The priorities of what this server serves itself, among the groups and versions of
// other servers.
const (
	kubernetesPriority = 16000 // groups of Kubernetes: the least that kube-apiserver gives one
	customPriority     = 1000  // groups of custom resources, as in kube-apiserver
	ownVersionPriority = 100   // versions, as those of custom resources there
)

// addRemote enters what other servers serve. Groups that this server serves stay in their
// order.
func (d *documents) addRemote() {
	if d.remote == nil {
		return
	}
	for i := range d.remote.Versions {
		remote := &d.remote.Versions[i]
		g := d.byName[remote.Group]
		if g == nil {
			g = &group{name: remote.Group}
			d.byName[remote.Group] = g
			d.insert(g, d.remote.Versions[i:])
		}
		if g.version(remote.Version) != nil {
			continue // this server's own
		}
		v := newGroupVersion(remote.GroupVersion)
		v.remote = remote
		g.versions = append(g.versions, v)
		slices.SortStableFunc(g.versions, func(a, b *groupVersion) int { return cmp.Compare(b.priority(), a.priority()) })
	}
}

// insert enters a group of other servers. versions begin with those of the group.
func (d *documents) insert(g *group, versions []aggregation.Version) {
	for _, v := range versions {
		if v.Group == g.name {
			g.remotePriority = max(g.remotePriority, v.GroupPriority)
		}
	}
	at := slices.IndexFunc(d.groups, func(other *group) bool { return other.name != "" && other.priority() < g.remotePriority })
	if at < 0 {
		at = len(d.groups)
	}
	d.groups = slices.Insert(d.groups, at, g)
}

func (g *group) priority() int32 {
	switch {
	case g.remotePriority > 0:
		return g.remotePriority
	case !strings.Contains(g.name, "."), strings.HasSuffix(g.name, ".k8s.io"):
		return kubernetesPriority
	}
	return customPriority
}

func (v *groupVersion) priority() int32 {
	if v.remote != nil {
		return v.remote.VersionPriority
	}
	return ownVersionPriority
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
	return h.documents.get(h.config.Resources.All(), h.config.CreateOnly, remote)
}
