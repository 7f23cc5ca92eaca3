package discovery

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// HandlerConfig is what a Handler describes.
type HandlerConfig struct {
	// Resources is the table of what is served. All never changes a slice that it
	// has returned.
	Resources interface{ All() []*resource.Resource }
	// Unstored are the kinds that are served and in no table.
	Unstored []*resource.Resource
	// Aggregated returns what other servers serve: the same value until that changes. nil:
	// there is nothing.
	Aggregated func() *aggregation.Published
	// Version is the program's own version.
	Version string
}

// Handler answers what clients ask about the API itself. It is safe for
// concurrent use.
type Handler struct {
	config    HandlerConfig
	documents documentCache
	// indexRead is whether the list of all documents of OpenAPI is worth making in advance.
	indexRead atomic.Bool
}

// NewHandler returns a Handler. It makes no document before a client asks, or MakeDocuments is called.
func NewHandler(config HandlerConfig) *Handler { return &Handler{config: config} }

// For returns the handler of a path, which has no trailing slash; nil for a path
// that is not about the API itself.
func (h *Handler) For(path string) http.HandlerFunc {
	switch path {
	case "":
		return h.serveIndex
	case "/version":
		return h.serveVersion
	case "/api", "/apis":
		return h.serveGroups
	case "/openapi/v2":
		return h.serveOpenAPIv2
	case "/openapi/v3":
		return h.serveOpenAPIv3Index
	}
	switch first, _, _ := strings.Cut(path[1:], "/"); first {
	case "api", "apis":
		return h.serveGroup
	case "openapi":
		return h.serveOpenAPIv3
	}
	return nil
}

// serveGroups answers /api, which is about the core group, and /apis, which
// is about the others.
func (h *Handler) serveGroups(w http.ResponseWriter, r *http.Request) {
	d := h.described()
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
	for _, g := range d.plain {
		list.Groups = append(list.Groups, apiGroup(g))
	}
	encoding.Respond(w, r, list)
}

// serveGroup answers /api/v1, /apis/GROUP and /apis/GROUP/VERSION.
func (h *Handler) serveGroup(w http.ResponseWriter, r *http.Request) {
	d := h.described()
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
	if v == nil || v.remote != nil { // that of another server is that server's to answer
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
func (h *Handler) serveIndex(w http.ResponseWriter, r *http.Request) {
	paths := []string{"/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
	for _, g := range h.described().groups {
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

// writeJSON answers with a document that is not an API object: indented for every client and
// whatever the query says, as by kube-apiserver.
func writeJSON(w http.ResponseWriter, r *http.Request, document any) {
	body, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	encoding.WriteBody(w, r, http.StatusOK, resource.MediaTypeJSON, body)
}
