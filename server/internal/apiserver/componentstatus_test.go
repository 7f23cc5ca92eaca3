package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/apiserver/componentstatus"
	"github.com/levelwire/levelwire/server/internal/resource"
)

const componentStatuses = "/api/v1/componentstatuses"

// withComponents has two components.
func withComponents(s *setup) {
	s.config.Components = componentstatus.Components{
		"scheduler": componentstatus.Func(func(context.Context) error { return errors.New("it does not run") }),
		"etcd-0":    componentstatus.Func(func(context.Context) error { return nil }),
	}
}

const (
	etcdItem      = `{"metadata":{"name":"etcd-0"},"conditions":[{"type":"Healthy","status":"True","message":"ok"}]}`
	schedulerItem = `{"metadata":{"name":"scheduler"},"conditions":[{"type":"Healthy","status":"False","error":"it does not run"}]}`
)

func TestComponentStatuses(t *testing.T) {
	c := newCluster(t, withComponents)
	const kind = `{"kind":"ComponentStatus","apiVersion":"v1",`
	list := func(items ...string) string {
		return `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
	}
	for path, want := range map[string]string{
		"":                                              list(etcdItem, schedulerItem),
		"?limit=1&resourceVersion=7":                    list(etcdItem, schedulerItem),
		"?fieldSelector=metadata.name":                  "400",
		"?labelSelector=a=b":                            list(),
		"?labelSelector=!a":                             list(etcdItem, schedulerItem),
		"?resourceVersionMatch=Exact":                   "422",
		"/etcd-0":                                       kind + etcdItem[1:],
		"/scheduler?resourceVersion=1":                  kind + schedulerItem[1:],
		"/etcd-0/status":                                "404",
		"?fieldSelector=status.phase%3Dok":              "400",
		"?fieldSelector=metadata.name%3Dscheduler":      list(schedulerItem),
		"?fieldSelector=metadata.name!%3Dscheduler":     list(etcdItem),
		"?fieldSelector=metadata.name%3Dnone":           list(),
		"?fieldSelector=metadata.namespace%3D":          list(etcdItem, schedulerItem),
		"?fieldSelector=metadata.namespace%3Ddefault":   list(),
		"?shardSelector=nonsense":                       "400",
		"?continue=anything&fieldSelector=&limit=":      "400",
		"?continue=anything&labelSelector=&limit=10000": list(etcdItem, schedulerItem),
	} {
		got := c.get(componentStatuses + path)
		if want := strings.TrimSpace(want); strings.TrimSpace(string(got.body)) != want && fmt.Sprint(got.code) != want {
			t.Errorf("%s: %d %s, want %s", path, got.code, got.body, want)
		}
		if strings.HasSuffix(path, "/status") {
			continue
		}
		if warned := got.header.Get("Warning"); warned != `299 - "v1 ComponentStatus is deprecated in v1.19+"` {
			t.Errorf("%s warns %q", path, warned)
		}
	}
	none := c.send(404, "GET", componentStatuses+"/none", "").status(t)
	if none.Message != `componentstatus "none" not found` || none.Details.Kind != "componentstatus" || none.Reason != metav1.StatusReasonNotFound {
		t.Errorf("of no component: %+v", none)
	}
}

// TestComponentStatusesInEveryForm: they are encoded as other objects are.
func TestComponentStatusesInEveryForm(t *testing.T) {
	c := newCluster(t, withComponents)
	for path, rows := range map[string]int{"": 2, "/scheduler": 1} {
		var table metav1.Table
		c.send(200, "GET", componentStatuses+path, "", "Accept: "+tableType).into(t, &table)
		var columns []string
		for _, column := range table.ColumnDefinitions {
			columns = append(columns, column.Name)
		}
		if got := strings.Join(columns, " "); got != "Name Status Message Error" || len(table.Rows) != rows {
			t.Fatalf("%q: columns %s, rows %+v", path, got, table.Rows)
		}
		if got := fmt.Sprint(table.Rows[rows-1].Cells); got != "[scheduler Unhealthy  it does not run]" {
			t.Errorf("%q: the last row is %s", path, got)
		}
		const metadata = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
		shape := map[bool]string{true: strings.Replace(metadata, "Metadata;", "MetadataList;", 1), false: metadata}[path == ""]
		for _, as := range []string{"", shape} {
			want := c.send(200, "GET", componentStatuses+path, "", "Accept: application/json"+as)
			if as != "" && (strings.Contains(string(want.body), "conditions") || !strings.Contains(string(want.body), `"metadata":{"name":"scheduler"}`)) {
				t.Errorf("%q as metadata: %s", path, want.body)
			}
			sameAsJSON(t, c.send(200, "GET", componentStatuses+path, "", "Accept: "+cborType+as).body, want.body)
			if yaml := string(c.send(200, "GET", componentStatuses+path, "", "Accept: application/yaml"+as).body); !strings.Contains(yaml, "name: scheduler\n") {
				t.Errorf("%q in YAML: %s", path, yaml)
			}
			c.send(200, "GET", componentStatuses+path, "", protoAnswer+as)
		}
	}
	var status corev1.ComponentStatus
	gvk := corev1.SchemeGroupVersion.WithKind("ComponentStatus")
	if _, _, err := resource.DecodeInto(resource.MediaTypeProtobuf, c.send(200, "GET", componentStatuses+"/etcd-0", "", protoAnswer).body, gvk, &status); err != nil ||
		status.Name != "etcd-0" || len(status.Conditions) != 1 || status.Conditions[0].Message != "ok" {
		t.Errorf("in protobuf: %v, %+v", err, status)
	}
	if got := c.get(componentStatuses, "Accept: text/html"); got.code != http.StatusNotAcceptable {
		t.Errorf("in HTML: %d", got.code)
	}
}

// TestComponentStatusesAreOnlyRead: what needs the state of a collection, or changes it, is refused.
func TestComponentStatusesAreOnlyRead(t *testing.T) {
	c := newCluster(t, withComponents)
	const body = `{"metadata":{"name":"etcd-0"}}`
	for _, refused := range [][2]string{
		{"GET", componentStatuses + "?watch=true"}, {"POST", componentStatuses},
		{"PUT", componentStatuses + "/etcd-0"}, {"PATCH", componentStatuses + "/etcd-0"}, {"DELETE", componentStatuses + "/etcd-0"}, {"DELETE", componentStatuses},
		{"GET", "/debug/listwatch/window" + componentStatuses}, {"GET", "/debug/listwatch/events" + componentStatuses},
		{"GET", "/debug/listwatch/history" + componentStatuses + "/etcd-0"},
	} {
		if got := c.do(refused[0], refused[1], body, jsonBody); got.code != http.StatusMethodNotAllowed || got.status(t).Reason != metav1.StatusReasonMethodNotAllowed {
			t.Errorf("%s %s: %d %s", refused[0], refused[1], got.code, got.body)
		}
	}
	if got := c.send(405, "GET", componentStatuses+"?watch=1", "").status(t); got.Message != `watch is not supported on resources of kind "componentstatuses"` {
		t.Errorf("a watch: %s", got.Message)
	}
	c.send(404, "GET", "/api/v1/watch/componentstatuses", "")
	c.send(404, "GET", "/api/v1/namespaces/default/componentstatuses", "")
	if got := c.do("POST", difference.Path+componentStatuses, ""); got.code != http.StatusConflict || got.status(t).Reason != difference.ReasonListInstead {
		t.Errorf("a difference: %d %s", got.code, got.body)
	}
}

func TestComponentStatusesAreDiscovered(t *testing.T) {
	c := newCluster(t, withComponents)
	list := decode[metav1.APIResourceList](t, c.get("/api/v1"))
	if !slices.IsSortedFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("not in the order of kube-apiserver: %+v", list.APIResources)
	}
	i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "componentstatuses" })
	got, err := json.Marshal(list.APIResources[max(i, 0)])
	must(t, err)
	if want := `{"name":"componentstatuses","singularName":"componentstatus","namespaced":false,"kind":"ComponentStatus","verbs":["get","list"],"shortNames":["cs"]}`; string(got) != want {
		t.Errorf("discovered is %s, want %s", got, want)
	}
	core := decode[apidiscoveryv2.APIGroupDiscoveryList](t, c.get("/api", "Accept: "+acceptV2)).Items[0].Versions[0].Resources
	i = slices.IndexFunc(core, func(r apidiscoveryv2.APIResourceDiscovery) bool { return r.Resource == "componentstatuses" })
	if i != 1 || core[i].Scope != apidiscoveryv2.ScopeCluster || !slices.Equal(core[i].Verbs, []string{"get", "list"}) || core[i].ResponseKind.Kind != "ComponentStatus" {
		t.Errorf("aggregated discovery has it at %d: %+v", i, core[max(i, 0)])
	}
	for _, path := range []string{"/openapi/v3/api/v1", "/openapi/v2"} {
		var d struct{ Paths map[string]map[string]any }
		c.send(200, "GET", path, "").into(t, &d)
		for path, item := range d.Paths {
			if !strings.Contains(path, "componentstatuses") {
				continue
			}
			delete(item, "parameters")
			if _, reads := item["get"]; len(item) != 1 || !reads || strings.Contains(path, "/watch/") {
				t.Errorf("%s has %v", path, item)
			}
		}
		if d.Paths[componentStatuses] == nil || d.Paths[componentStatuses+"/{name}"] == nil {
			t.Errorf("%s lacks them", path)
		}
	}
}
