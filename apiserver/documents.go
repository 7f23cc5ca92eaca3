package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/resource"
)

// group is one API group as the table has it: versions in order of
// preference, and their resources.
type group struct {
	name      string
	versions  []string
	resources map[string][]*resource.Resource
}

// documents describe what is served: everything that discovery and OpenAPI
// answer with. They are made when the first client asks, and anew when the
// table has changed.
type documents struct {
	all    []*resource.Resource
	groups []group

	openAPI   sync.Once
	v3        map[string][]byte // by the path below /openapi/v3/
	v3Index   []byte
	v2, v2pb  []byte
	openError error
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
	c.current = &documents{all: all, groups: groupsOf(withPosted(all))}
	return c.current
}

// groupsOf collects groups from the table's order, in which the preferred
// version comes first.
func groupsOf(all []*resource.Resource) []group {
	var groups []group
	for _, res := range all {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == res.Group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{name: res.Group, resources: map[string][]*resource.Resource{}})
		}
		g := &groups[i]
		if g.resources[res.Version] == nil {
			g.versions = append(g.versions, res.Version)
		}
		g.resources[res.Version] = append(g.resources[res.Version], res)
	}
	return groups
}

func (d *documents) group(name string) *group {
	i := slices.IndexFunc(d.groups, func(g group) bool { return g.name == name })
	if i < 0 {
		return nil
	}
	return &d.groups[i]
}

func (s *Server) described() *documents { return s.documents.get(s.config.Resources.All()) }

// serveGroups answers /api, which is about the core group, and /apis, which
// is about the others.
func (s *Server) serveGroups(w http.ResponseWriter, r *http.Request) {
	d := s.described()
	core := strings.Trim(r.URL.Path, "/") == "api"
	if wantsAggregated(parseAccept(strings.Join(r.Header.Values("Accept"), ","))) {
		s.serveAggregated(w, r, d, core)
		return
	}
	if core {
		s.respond(w, r, &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}},
		})
		return
	}
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range d.groups {
		if g.name != "" {
			list.Groups = append(list.Groups, apiGroup(g.name, g.versions))
		}
	}
	s.respond(w, r, list)
}

func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request, d *documents, core bool) {
	groups := []apidiscoveryv2.APIGroupDiscovery{}
	for _, g := range d.groups {
		if (g.name == "") != core {
			continue
		}
		entry := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			entry.Versions = append(entry.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version: v, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: aggregatedResources(g.resources[v]),
			})
		}
		groups = append(groups, entry)
	}
	body, err := json.Marshal(aggregatedList(groups))
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeTagged(w, r, aggregatedType, body)
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
		if g := d.group(parts[1]); g != nil && g.name != "" {
			group := apiGroup(g.name, g.versions)
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			s.respond(w, r, &group)
			return
		}
	case parts[0] == "apis" && len(parts) == 3 && parts[1] != "":
		gv = schema.GroupVersion{Group: parts[1], Version: parts[2]}
	}
	g := d.group(gv.Group)
	if gv.Version == "" || g == nil || g.resources[gv.Version] == nil {
		writeError(w, r, errNoSuchPath())
		return
	}
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(), APIResources: apiResources(g.resources[gv.Version]),
	}
	s.respond(w, r, list)
}

// serveIndex lists the paths, as GET / does everywhere.
func (s *Server) serveIndex(w http.ResponseWriter, r *http.Request) {
	paths := []string{"/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
	for _, g := range s.described().groups {
		base := "/api"
		if g.name != "" {
			base = "/apis/" + g.name
			paths = append(paths, base)
		}
		for _, v := range g.versions {
			paths = append(paths, base+"/"+v)
		}
	}
	slices.Sort(paths)
	writeJSON(w, r, metav1.RootPaths{Paths: paths})
}

// writeJSON answers with a document that is not an API object.
func writeJSON(w http.ResponseWriter, r *http.Request, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeBody(w, r, http.StatusOK, mediaNames[mediaJSON], body)
}

// writeTagged answers with a document that clients keep: if the one they have
// is the same, it is not sent again.
func writeTagged(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	sum := sha256.Sum256(body)
	tag := `"` + strings.ToUpper(hex.EncodeToString(sum[:16])) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Vary", "Accept")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeBody(w, r, http.StatusOK, contentType, body)
}
