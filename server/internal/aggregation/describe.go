package aggregation

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Published is what all aggregated servers serve, as this server publishes it. It never
// changes.
type Published struct{ Versions []Version }

// Version is a group and version of an aggregated server.
type Version struct {
	schema.GroupVersion
	// Priority is that of the APIService.
	Priority Priority
	// Discovery is what the server serves, or served when it last answered, and then it is
	// marked as stale.
	Discovery apidiscoveryv2.APIVersionDiscovery
	// OpenAPIHash is the hash of its OpenAPI of version 3; "" if the server has none.
	OpenAPIHash string
	// openAPIV2 is the server's OpenAPI of version 2, compressed; nil if it has none.
	openAPIV2 []byte
}

// OpenAPIV2 returns the server's OpenAPI of version 2, of all that it serves, in JSON;
// nil if it has none.
func (v *Version) OpenAPIV2() ([]byte, error) {
	if v.openAPIV2 == nil {
		return nil, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(v.openAPIV2))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Published returns what aggregated servers serve: the same value until that changes.
func (a *Aggregator) Published() *Published {
	if a == nil {
		return nothing
	}
	return a.published.Load()
}

var nothing = &Published{}

// publish makes Published anew. It must not be called with a.mu held.
func (a *Aggregator) publish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := &Published{}
	documents := int64(0)
	for _, s := range a.inOrder() {
		obj := s.object.Load()
		v := Version{GroupVersion: s.gv, Priority: Priority{obj.Spec.GroupPriorityMinimum, obj.Spec.VersionPriority}}
		v.Discovery = apidiscoveryv2.APIVersionDiscovery{Version: s.gv.Version}
		if d := s.described.Load(); d != nil {
			v.Discovery, v.OpenAPIHash = d.discovery, d.openAPIHash
			fits := documents+d.openAPIV2Size <= maxAllOpenAPI
			if fits {
				v.openAPIV2 = d.openAPIV2
				documents += d.openAPIV2Size
			}
			if s.openAPILeftOut == fits { // it has changed
				s.openAPILeftOut = !fits
				if !fits {
					a.opts.Logger.Warn("the OpenAPI v2 of an aggregated server is left out: the documents of all servers together are too large",
						"name", s.name(), "bytes", d.openAPIV2Size, "limit", maxAllOpenAPI)
				}
			}
		}
		v.Discovery.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
		if last := s.last.Load(); last != nil && last.condition.Reason == passed {
			v.Discovery.Freshness = apidiscoveryv2.DiscoveryFreshnessCurrent
		}
		next.Versions = append(next.Versions, v)
	}
	slices.SortFunc(next.Versions, compareVersions)
	if before := a.published.Load(); !reflect.DeepEqual(before, next) {
		a.published.Store(next)
	}
}

// inOrder returns the servers of APIServices, the oldest first, so that a new one
// displaces nothing of those before. a.mu must be held.
func (a *Aggregator) inOrder() []*Server {
	return slices.SortedFunc(maps.Values(a.byName), func(s, t *Server) int {
		x, y := s.object.Load(), t.object.Load()
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), strings.Compare(x.Name, y.Name))
	})
}

// compareVersions sorts by group, and within a group by priority, as kube-aggregator does.
func compareVersions(v, w Version) int {
	return cmp.Or(strings.Compare(v.Group, w.Group), cmp.Compare(w.Priority.Version, v.Priority.Version),
		version.CompareKubeAwareVersionStrings(w.Version, v.Version))
}

// description is what a server says about itself. It never changes.
type description struct {
	discovery   apidiscoveryv2.APIVersionDiscovery
	openAPIHash string
	openAPIV2   []byte // compressed
	// openAPIV2Size is its size before that.
	openAPIV2Size int64
	openAPITag    string // the ETag of openAPIV2
}

// describe asks the server what it serves. An error says that it does not answer about
// its group and version; without OpenAPI a server is available all the same.
func (s *Server) describe(ctx context.Context) error {
	path := "/apis/" + s.gv.Group + "/" + s.gv.Version
	var list struct {
		GroupVersion string
		Resources    resources
	}
	if err := s.getJSON(ctx, path, &list); err != nil {
		return err
	}
	if list.GroupVersion != s.gv.String() {
		return fmt.Errorf("the answer to %s is about %q", path, list.GroupVersion)
	}
	before := s.described.Load()
	d := &description{discovery: convertDiscovery(s.gv, list.Resources)}
	s.describeOpenAPI(ctx, d, before)
	if before == nil || !reflect.DeepEqual(before, d) {
		s.described.Store(d)
		s.of.publish()
	}
	return nil
}

// maxResources bounds what a server says that it serves.
const maxResources = 10_000

// resources are decoded one by one: a server that sends millions of empty ones must not
// cost a hundred times the memory of what it sends.
type resources []metav1.APIResource

// UnmarshalJSON implements json.Unmarshaler.
func (r *resources) UnmarshalJSON(data []byte) error {
	if *r = nil; string(data) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return errors.Join(errors.New("the resources are no list"), err)
	}
	for decoder.More() {
		if len(*r) == maxResources {
			return fmt.Errorf("there are more than %d resources", maxResources)
		}
		var next metav1.APIResource
		if err := decoder.Decode(&next); err != nil {
			return err
		}
		*r = append(*r, next)
	}
	return nil
}

// describeOpenAPI adds what the server says of its OpenAPI.
func (s *Server) describeOpenAPI(ctx context.Context, d, before *description) {
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := s.getJSON(ctx, "/openapi/v3", &index); err == nil {
		_, d.openAPIHash, _ = strings.Cut(index.Paths["apis/"+s.gv.Group+"/"+s.gv.Version].ServerRelativeURL, "?hash=")
	}
	tag := ""
	if before != nil {
		tag = before.openAPITag
	}
	body, newTag, notModified, err := s.get(ctx, "/openapi/v2", resource.MediaTypeJSON, tag, maxOpenAPI)
	switch {
	case notModified:
		d.openAPIV2, d.openAPIV2Size, d.openAPITag = before.openAPIV2, before.openAPIV2Size, before.openAPITag
	case err == nil && json.Valid(body):
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(body) // into memory
		_ = z.Close()
		d.openAPIV2, d.openAPIV2Size, d.openAPITag = out.Bytes(), int64(len(body)), newTag
	}
}

// convertDiscovery returns plain discovery in its aggregated form.
func convertDiscovery(gv schema.GroupVersion, resources []metav1.APIResource) apidiscoveryv2.APIVersionDiscovery {
	d := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Resources: []apidiscoveryv2.APIResourceDiscovery{}}
	kind := func(r *metav1.APIResource) *metav1.GroupVersionKind {
		if r.Kind == "" {
			return nil
		}
		return &metav1.GroupVersionKind{Group: cmp.Or(r.Group, gv.Group), Version: cmp.Or(r.Version, gv.Version), Kind: r.Kind}
	}
	at := map[string]int{}
	entry := func(name string) *apidiscoveryv2.APIResourceDiscovery {
		i, ok := at[name]
		if !ok {
			i = len(d.Resources)
			at[name] = i
			d.Resources = append(d.Resources, apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: apidiscoveryv2.ScopeCluster, ResponseKind: &metav1.GroupVersionKind{}})
		}
		return &d.Resources[i]
	}
	for i := range resources {
		r := &resources[i]
		name, sub, isSub := strings.Cut(r.Name, "/")
		e := entry(name)
		if r.Namespaced {
			e.Scope = apidiscoveryv2.ScopeNamespace
		}
		if isSub {
			e.Subresources = append(e.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind(r), Verbs: r.Verbs})
			continue
		}
		e.ResponseKind, e.SingularResource, e.Verbs, e.ShortNames, e.Categories = kind(r), r.SingularName, r.Verbs, r.ShortNames, r.Categories
	}
	return d
}
