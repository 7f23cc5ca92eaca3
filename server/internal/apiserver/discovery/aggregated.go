package discovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// mediaTypeAggregated is what clients accept and, to the letter, what the answer
// must have as its type: KEP-3352.
const mediaTypeAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether a client accepts v2 of aggregated discovery and
// prefers it to plain JSON. Clients that know only v2beta1 get the plain form.
func wantsAggregated(clauses []encoding.AcceptClause) bool {
	for _, c := range clauses {
		if c.MediaType != resource.MediaTypeJSON {
			continue
		}
		switch c.Params["as"] {
		case "APIGroupDiscoveryList":
			if c.Params["g"] == "apidiscovery.k8s.io" && c.Params["v"] == "v2" {
				return true
			}
		case "":
			return false
		}
	}
	return false
}

// aggregatedDocument is the discovery of several groups in one document.
type aggregatedDocument struct {
	once sync.Once
	body []byte
	tag  string
	err  error
}

// serveAggregated answers with the discovery of the core group or of all
// others.
func serveAggregated(w http.ResponseWriter, r *http.Request, d *documents, core bool) {
	document := &d.aggregated[0]
	if !core {
		document = &d.aggregated[1]
	}
	document.once.Do(func() { document.err = document.join(d.groups, core) })
	if document.err != nil {
		encoding.WriteError(w, r, document.err)
		return
	}
	w.Header().Set("ETag", document.tag)
	w.Header().Set("Vary", "Accept")
	if r.Header.Get("If-None-Match") == document.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	encoding.WriteBody(w, r, http.StatusOK, mediaTypeAggregated, document.body)
}

// join puts the document together from what is kept of each version, so that
// a hundred definitions that are installed one after the other cost a hundred
// versions, and not thousands.
func (a *aggregatedDocument) join(groups []*group, core bool) error {
	var b bytes.Buffer
	b.WriteString(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[`)
	separator := ""
	for _, g := range groups {
		if (g.name == "") != core {
			continue
		}
		name, err := json.Marshal(g.name)
		if err != nil {
			return err
		}
		b.WriteString(separator + `{"metadata":{"name":` + string(name) + `},"versions":[`)
		separator = ","
		for i, v := range g.versions {
			described, err := v.discovery()
			if err != nil {
				return err
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(described)
		}
		b.WriteString("]}")
	}
	b.WriteString("]}")
	sum := sha256.Sum256(b.Bytes())
	a.body, a.tag = b.Bytes(), `"`+strings.ToUpper(hex.EncodeToString(sum[:16]))+`"`
	return nil
}

// aggregatedVersion describes one version of a group.
func aggregatedVersion(v *groupVersion) apidiscoveryv2.APIVersionDiscovery {
	if v.remote != nil {
		return v.remote.Discovery
	}
	return apidiscoveryv2.APIVersionDiscovery{
		Version: v.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: aggregatedResources(v.resources),
	}
}

func aggregatedResources(resources []*resource.Resource) []apidiscoveryv2.APIResourceDiscovery {
	list := make([]apidiscoveryv2.APIResourceDiscovery, 0, len(resources))
	for _, res := range resources {
		entry := apidiscoveryv2.APIResourceDiscovery{
			Resource: res.Plural, ResponseKind: metaKind(res.GroupVersionKind()), Scope: apidiscoveryv2.ScopeCluster,
			SingularResource: res.Singular, Verbs: request.VerbsOf(res), ShortNames: res.ShortNames, Categories: res.Categories,
		}
		if res.Namespaced {
			entry.Scope = apidiscoveryv2.ScopeNamespace
		}
		for _, sub := range subresourcesOf(res) {
			entry.Subresources = append(entry.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub.name, ResponseKind: metaKind(sub.kind), Verbs: sub.verbs,
			})
		}
		list = append(list, entry)
	}
	return list
}

func metaKind(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}
