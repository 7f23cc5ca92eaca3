package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// documents describe what is served: everything that discovery and OpenAPI
// answer with. They are made when the first client asks, and anew when the
// table has changed; what is described the same way as before is kept.
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

// groupVersion is one version of a group with its resources. It is kept from
// one state of the table to the next as long as they are the same, and with it
// what has been made of it.
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

// get returns the documents of a table. The table never changes a slice that
// it has returned, so the slice's identity says whether it is the same.
func (c *documentCache) get(all []*resource.Resource) *documents {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.current; d != nil && len(d.all) == len(all) && (len(all) == 0 || &d.all[0] == &all[0]) {
		return d
	}
	d := &documents{all: all, byName: make(map[string]*group)}
	for _, res := range withCreateOnly(all) {
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

// keep takes over every version that has the same resources as before.
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

func (s *Server) described() *documents { return s.documents.get(s.config.Resources.All()) }

// serveGroups answers /api, which is about the core group, and /apis, which
// is about the others.
func (s *Server) serveGroups(w http.ResponseWriter, r *http.Request) {
	d := s.described()
	core := strings.Trim(r.URL.Path, "/") == "api"
	if wantsAggregated(encoding.ParseAccept(strings.Join(r.Header.Values("Accept"), ","))) {
		serveAggregated(w, r, d, core)
		return
	}
	if core {
		encoding.Respond(w, r, &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}},
		})
		return
	}
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range d.groups {
		if g.name != "" {
			list.Groups = append(list.Groups, apiGroup(g))
		}
	}
	encoding.Respond(w, r, list)
}

// serveGroup answers /api/v1, /apis/GROUP and /apis/GROUP/VERSION.
func (s *Server) serveGroup(w http.ResponseWriter, r *http.Request) {
	d := s.described()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	gv := schema.GroupVersion{}
	switch {
	case parts[0] == "api" && len(parts) == 2:
		gv.Version = parts[1]
	case parts[0] == "apis" && len(parts) == 2:
		if g := d.byName[parts[1]]; g != nil && g.name != "" {
			group := apiGroup(g)
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			encoding.Respond(w, r, &group)
			return
		}
	case parts[0] == "apis" && len(parts) == 3 && parts[1] != "":
		gv = schema.GroupVersion{Group: parts[1], Version: parts[2]}
	}
	v := d.version(gv)
	if v == nil {
		encoding.WriteError(w, r, status.NoSuchPath())
		return
	}
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(), APIResources: apiResources(v.resources),
	}
	encoding.Respond(w, r, list)
}

// serveIndex lists the paths, as GET / does everywhere.
func (s *Server) serveIndex(w http.ResponseWriter, r *http.Request) {
	paths := []string{"/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
	for _, g := range s.described().groups {
		if g.name != "" {
			paths = append(paths, "/apis/"+g.name)
		}
		for _, v := range g.versions {
			paths = append(paths, "/"+openapi.Place(v.GroupVersion))
		}
	}
	slices.Sort(paths)
	writeJSON(w, r, metav1.RootPaths{Paths: paths})
}

// writeJSON answers with a document that is not an API object.
func writeJSON(w http.ResponseWriter, r *http.Request, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	encoding.WriteBody(w, r, http.StatusOK, resource.MediaTypeJSON, body)
}
