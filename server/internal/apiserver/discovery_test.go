package apiserver

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
)

const (
	aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

	acceptV2     = aggregatedType + ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	acceptV2beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)

func decode[T any](t *testing.T, r reply) T {
	t.Helper()
	var v T
	if r.code != http.StatusOK {
		t.Fatalf("%d %s", r.code, r.body)
	}
	must(t, json.Unmarshal(r.body, &v))
	return v
}

func TestPlainDiscovery(t *testing.T) {
	c := newCluster(t)
	if got := decode[metav1.APIVersions](t, c.get("/api", "Accept: "+acceptV2beta)); !slices.Equal(got.Versions, []string{"v1"}) || got.Kind != "APIVersions" {
		t.Errorf("/api: %+v", got)
	}
	groups := decode[metav1.APIGroupList](t, c.get("/apis", "Accept: "+acceptV2beta))
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "autoscaling" })
	if i < 0 || groups.Groups[i].PreferredVersion.GroupVersion != "autoscaling/v2" || len(groups.Groups[i].Versions) != 2 {
		t.Errorf("/apis: %+v", groups)
	}
	// Kubernetes has its v1beta1 off by default.
	if got := decode[metav1.APIGroup](t, c.get("/apis/authentication.k8s.io")); len(got.Versions) != 1 || got.Versions[0].Version != "v1" {
		t.Errorf("/apis/authentication.k8s.io: %+v", got)
	}
	if got := decode[metav1.APIGroup](t, c.get("/apis/apps")); got.Name != "apps" || got.Kind != "APIGroup" {
		t.Errorf("/apis/apps: %+v", got)
	}
	list := decode[metav1.APIResourceList](t, c.get("/api/v1"))
	var names []string
	for _, r := range list.APIResources {
		names = append(names, r.Name)
		if r.Name == "pods" && (!r.Namespaced || r.Kind != "Pod" || !slices.Equal(r.ShortNames, []string{"po"}) || len(r.Verbs) != 8) {
			t.Errorf("pods: %+v", r)
		}
	}
	for _, want := range []string{"pods", "pods/status", "pods/binding", "pods/eviction", "namespaces/finalize"} {
		if !slices.Contains(names, want) {
			t.Errorf("/api/v1 lacks %s: %v", want, names)
		}
	}
	if list.GroupVersion != "v1" {
		t.Errorf("groupVersion %q", list.GroupVersion)
	}
	for _, path := range []string{"/api/v2", "/apis/none", "/apis/apps/v9", "/apis/apps/", "/api/v1/"} {
		want := map[bool]int{true: 200, false: 404}[strings.HasSuffix(path, "/")]
		if got := c.get(path); got.code != want {
			t.Errorf("%s: %d", path, got.code)
		}
	}
}

// TestVerbs: every resource offers what its storage in kube-apiserver does. Nearly all have the whole generic
// store, and the subresources that show an object can be read and changed.
func TestVerbs(t *testing.T) {
	c := newCluster(t)
	const create = "create"
	others := map[string]string{
		"v1 bindings":               create,
		"v1 componentstatuses":      "get list",
		"v1 namespaces":             "create delete get list patch update watch", // its storage has no DeleteCollection
		"v1 namespaces/finalize":    "update",
		"v1 pods/binding":           create,
		"v1 pods/eviction":          create,
		"v1 serviceaccounts/token":  create,
		"authentication.k8s.io/v1 ": create, // and all of the group
		"authorization.k8s.io/v1 ":  create,
	}
	groupVersions := []string{"v1"}
	for _, group := range decode[metav1.APIGroupList](t, c.get("/apis")).Groups {
		for _, v := range group.Versions {
			groupVersions = append(groupVersions, v.GroupVersion)
		}
	}
	seen := map[string]bool{}
	for _, gv := range groupVersions {
		path := "/apis/" + gv
		if gv == "v1" {
			path = "/api/v1"
		}
		for _, res := range decode[metav1.APIResourceList](t, c.get(path)).APIResources {
			want := "create delete deletecollection get list patch update watch"
			if strings.Contains(res.Name, "/") {
				want = "get patch update"
			}
			for _, name := range []string{gv + " " + res.Name, gv + " "} {
				if verbs := others[name]; verbs != "" {
					want, seen[name] = verbs, true
				}
			}
			if got := strings.Join(res.Verbs, " "); got != want {
				t.Errorf("%s %s can be asked to %s, want %s", gv, res.Name, got, want)
			}
		}
	}
	for name := range others {
		if !seen[name] {
			t.Errorf("%s is not served", name)
		}
	}
}

func TestAggregatedDiscovery(t *testing.T) {
	c := newCluster(t)
	for _, path := range []string{"/api", "/apis"} {
		got := c.get(path, "Accept: "+acceptV2)
		if got.header.Get("Content-Type") != aggregatedType {
			t.Fatalf("%s: content type %q", path, got.header.Get("Content-Type"))
		}
		list := decode[apidiscoveryv2.APIGroupDiscoveryList](t, got)
		for _, group := range list.Items {
			if (group.Name == "") != (path == "/api") {
				t.Errorf("%s lists group %q", path, group.Name)
			}
			for _, v := range group.Versions {
				if len(v.Resources) == 0 || v.Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent {
					t.Errorf("%s/%s: %+v", group.Name, v.Version, v)
				}
			}
		}
		again := c.get(path, "Accept: "+acceptV2, "If-None-Match: "+got.header.Get("ETag"))
		if again.code != http.StatusNotModified {
			t.Errorf("%s with its own tag: %d", path, again.code)
		}
	}
}

// kubectl sends fieldValidation only to where a PATCH of the kind says that it
// takes the parameter.
func TestOpenAPIOffersFieldValidation(t *testing.T) {
	c := newCluster(t)
	type document struct {
		Paths map[string]struct {
			Patch *struct {
				Kind       metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
				Parameters []struct{ Name, In string }
			}
		}
	}
	offered := func(d document) map[metav1.GroupVersionKind]bool {
		found := map[metav1.GroupVersionKind]bool{}
		for _, p := range d.Paths {
			for i := 0; p.Patch != nil && i < len(p.Patch.Parameters); i++ {
				if q := p.Patch.Parameters[i]; q.Name == "fieldValidation" && q.In == "query" {
					found[p.Patch.Kind] = true
				}
			}
		}
		return found
	}
	index := decode[struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}](t, c.get("/openapi/v3"))
	v3 := map[metav1.GroupVersionKind]bool{}
	for place, p := range index.Paths {
		if !strings.HasPrefix(p.ServerRelativeURL, "/openapi/v3/"+place+"?hash=") {
			t.Errorf("%s is at %s", place, p.ServerRelativeURL)
		}
		for gvk := range offered(decode[document](t, c.get(p.ServerRelativeURL))) {
			v3[gvk] = true
		}
	}
	v2 := offered(decode[document](t, c.get("/openapi/v2")))
	for _, res := range c.table.All() {
		gvk := metav1.GroupVersionKind(res.GroupVersionKind())
		if request.Offers(res, request.VerbPatch) && (!v3[gvk] || !v2[gvk]) {
			t.Errorf("%v: in version 3 %v, in version 2 %v", gvk, v3[gvk], v2[gvk])
		}
	}
	binary := c.get("/openapi/v2", "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	var d openapi_v2.Document
	must(t, proto.Unmarshal(binary.body, &d))
	if _, _, err := mime.ParseMediaType(binary.header.Get("Content-Type")); err != nil {
		t.Errorf("clients cannot parse the content type: %v", err)
	}
	if len(d.Paths.Path) == 0 || binary.header.Get("Content-Type") != "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" {
		t.Errorf("%d paths in %s", len(d.Paths.Path), binary.header.Get("Content-Type"))
	}
	if got := c.get("/openapi/v3/apis/none/v1"); got.code != 404 {
		t.Errorf("unknown group: %d", got.code)
	}
}

func TestDocumentsFollowTheTable(t *testing.T) {
	c := newCluster(t)
	if got := c.get("/apis/example.com"); got.code != 404 {
		t.Fatalf("before: %d", got.code)
	}
	added := newThing()
	must(t, c.table.Add(added))
	if got := decode[metav1.APIResourceList](t, c.get("/apis/example.com/v1")); len(got.APIResources) != 1 {
		t.Errorf("after: %+v", got)
	}
	if got := c.get("/openapi/v3/apis/example.com/v1"); got.code != 200 {
		t.Errorf("OpenAPI after: %d", got.code)
	}
	must(t, c.table.Remove(added.GroupVersionResource()))
	if got := c.get("/apis/example.com"); got.code != 404 {
		t.Errorf("removed: %d", got.code)
	}
}

func TestVersionIsOneOfKubernetes(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.Version = "1.2.3 (local)" })
	got := decode[version.Info](t, c.get("/version", "Authorization: "))
	want := fmt.Sprintf("v%s.%s.", got.Major, got.Minor)
	if !strings.HasPrefix(got.GitVersion, want) || !strings.HasSuffix(got.GitVersion, "+levelwire-1.2.3--local-") {
		t.Errorf("gitVersion %q with major %s minor %s", got.GitVersion, got.Major, got.Minor)
	}
}

// TestDocumentsThatAreNoObjectsAreIndented: the version and the paths are for people to read.
func TestDocumentsThatAreNoObjectsAreIndented(t *testing.T) {
	c := newCluster(t)
	for path, want := range map[string]string{"/version": "{\n  \"major\": ", "/": "{\n  \"paths\": [\n    \"/api\",\n", "/version?pretty=0": "{\n  \"major\": "} {
		if got := c.get(path, "User-Agent: probe"); got.code != http.StatusOK || !strings.HasPrefix(string(got.body), want) {
			t.Errorf("GET %s: %d %s", path, got.code, got.body)
		}
	}
}
