package discovery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// upstreamOrder is what kube-apiserver 1.37 publishes as api/discovery/apis.json, with all that
// it can serve. Its aggregated discovery has the same order.
var upstreamOrder = []string{
	"apiregistration.k8s.io/v1", "apps/v1", "events.k8s.io/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1", "autoscaling/v2", "autoscaling/v1",
	"batch/v1", "certificates.k8s.io/v1", "certificates.k8s.io/v1beta1", "networking.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1",
	"storage.k8s.io/v1", "admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1alpha1",
	"apiextensions.k8s.io/v1", "scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "coordination.k8s.io/v1",
	"coordination.k8s.io/v1beta1", "coordination.k8s.io/v1alpha2", "node.k8s.io/v1", "discovery.k8s.io/v1", "resource.k8s.io/v1",
	"resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1", "resource.k8s.io/v1alpha3", "flowcontrol.apiserver.k8s.io/v1",
	"internal.apiserver.k8s.io/v1alpha1", "storagemigration.k8s.io/v1", "storagemigration.k8s.io/v1beta1", "lifecycle.k8s.io/v1alpha1",
}

// listed returns the groups and versions of /apis in their order.
func listed(t *testing.T, h *Handler) (plain, aggregated []string) {
	t.Helper()
	get := func(accept string, into any) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/apis", nil)
		r.Header.Set("Accept", accept)
		h.For("/apis")(w, r)
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
	var groups metav1.APIGroupList
	get(resource.MediaTypeJSON, &groups)
	for _, g := range groups.Groups {
		if g.PreferredVersion != g.Versions[0] {
			t.Errorf("%s prefers %s, and lists %s first", g.Name, g.PreferredVersion.Version, g.Versions[0].Version)
		}
		for _, v := range g.Versions {
			plain = append(plain, v.GroupVersion)
		}
	}
	var discovered apidiscoveryv2.APIGroupDiscoveryList
	get(mediaTypeAggregated, &discovered)
	for _, g := range discovered.Items {
		for _, v := range g.Versions {
			aggregated = append(aggregated, g.Name+"/"+v.Version)
		}
	}
	return plain, aggregated
}

// TestBuiltinOrder compares with kube-apiserver's order of its own groups and versions.
func TestBuiltinOrder(t *testing.T) {
	reviews := []*resource.Resource{customKind("authorization.k8s.io", "v1"), customKind("authentication.k8s.io", "v1")}
	plain, aggregated := listed(t, NewHandler(HandlerConfig{Resources: builtin.Table(), Unstored: reviews}))
	want := slices.DeleteFunc(slices.Clone(upstreamOrder), func(gv string) bool { return !slices.Contains(plain, gv) })
	if !slices.Equal(plain, want) {
		t.Errorf("plain discovery lists\n%s, want\n%s", strings.Join(plain, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(aggregated, want) {
		t.Errorf("aggregated discovery lists\n%s, want\n%s", strings.Join(aggregated, "\n"), strings.Join(want, "\n"))
	}
}

// customKind is a custom kind, the only one of its group and version.
func customKind(group, version string) *resource.Resource {
	res := thing()
	res.Group, res.Version, res.StorePrefix = group, version, "/registry/"+group+"/"+version+"things/"
	return res
}

// TestOrderAmongOthers: groups of custom resources and of other servers go by their priorities
// among Kubernetes' own.
func TestOrderAmongOthers(t *testing.T) {
	table, err := resource.NewTable(
		customKind("b.example.com", "v1alpha1"), customKind("a.example.com", "v2"), customKind("c.example.com", "v1beta1"),
		customKind("c.example.com", "v1"), customKind("c.example.com", "v10"), customKind("c.example.com", "v2"),
		builtin.Table().Lookup("apps", "v1", "deployments"), builtin.Table().Lookup("node.k8s.io", "v1", "runtimeclasses"),
	)
	if err != nil {
		t.Fatal(err)
	}
	remote := func(group, version string, groupPriority, versionPriority int32) aggregation.Version {
		v := aggregation.Version{
			GroupVersion: schema.GroupVersion{Group: group, Version: version},
			Priority:     aggregation.Priority{Group: groupPriority, Version: versionPriority},
		}
		v.Discovery.Version = version
		return v
	}
	published := &aggregation.Published{Versions: []aggregation.Version{
		remote("apps", "v1", 1, 1), // this server's own
		remote("c.example.com", "v3", 1000, 200),
		remote("first.example.com", "v1", 20000, 1),
		remote("last.example.com", "v1", 10, 1),
		remote("metrics.k8s.io", "v1beta1", 100, 100),
		remote("middle.example.com", "v1", 500, 5), remote("middle.example.com", "v2", 16299, 1),
	}}
	h := NewHandler(HandlerConfig{Resources: table, Aggregated: func() *aggregation.Published { return published }})
	plain, aggregated := listed(t, h)
	before := []string{"first.example.com/v1", "apps/v1", "node.k8s.io/v1", "middle.example.com/v1", "middle.example.com/v2"}
	a, b := []string{"a.example.com/v2"}, []string{"b.example.com/v1alpha1"}
	c := []string{"c.example.com/v3", "c.example.com/v10", "c.example.com/v2", "c.example.com/v1", "c.example.com/v1beta1"}
	after := []string{"metrics.k8s.io/v1beta1", "last.example.com/v1"}
	// v1.c.example.com comes before v1alpha1.b.example.com, and that before v2.a.example.com.
	if want := slices.Concat(before, c, b, a, after); !slices.Equal(plain, want) {
		t.Errorf("plain discovery lists\n%s, want\n%s", strings.Join(plain, "\n"), strings.Join(want, "\n"))
	}
	if want := slices.Concat(before, a, b, c, after); !slices.Equal(aggregated, want) {
		t.Errorf("aggregated discovery lists\n%s, want\n%s", strings.Join(aggregated, "\n"), strings.Join(want, "\n"))
	}
}
