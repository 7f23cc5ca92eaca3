package aggregation

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// A hostile server may say that it serves millions of resources.
func TestResourcesAreBounded(t *testing.T) {
	var list struct{ Resources resources }
	err := json.Unmarshal([]byte(`{"resources":[`+strings.Repeat("{},", maxResources)+`{}]}`), &list)
	if err == nil || !strings.Contains(err.Error(), "more than 10000 resources") {
		t.Errorf("error is %v", err)
	}
	for _, good := range []string{`{}`, `{"resources":null}`, `{"resources":[{"name":"pods"},{"name":"pods/status"}]}`} {
		if err := json.Unmarshal([]byte(good), &list); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	if len(list.Resources) != 2 || list.Resources[1].Name != "pods/status" {
		t.Errorf("%+v", list.Resources)
	}
}

// The OpenAPI v2 of all servers is merged in memory. Of documents that are too large
// together, those of the newest APIServices are left out, until there is room.
func TestAllOpenAPITogetherIsBounded(t *testing.T) {
	var logged strings.Builder
	a := &Aggregator{opts: Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}, byName: map[string]*Server{}}
	a.published.Store(&Published{})
	for i, group := range []string{"e", "d", "c", "b", "a"} { // the oldest first
		s := &Server{of: a, gv: schema.GroupVersion{Group: group, Version: "v1"}}
		s.object.Store(&apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "v1." + group, CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0))},
			Spec:       apiregistrationv1.APIServiceSpec{Service: &apiregistrationv1.ServiceReference{}},
		})
		s.described.Store(&description{openAPIHash: group, openAPIV2: []byte(group), openAPIV2Size: maxOpenAPI})
		a.byName["v1."+group] = s
	}
	published := func() string {
		a.publish()
		list := ""
		for _, v := range a.Published().Versions {
			if v.OpenAPIHash != v.Group {
				t.Errorf("OpenAPI v3 of %s is %q", v.Group, v.OpenAPIHash)
			}
			list += string(v.openAPIV2)
		}
		return list
	}
	for range 2 {
		if got := published(); got != "bcde" {
			t.Errorf("published are %s", got)
		}
	}
	if got := logged.String(); strings.Count(got, "left out") != 1 || !strings.Contains(got, "name=v1.a") {
		t.Errorf("logged: %s", got)
	}
	a.byName["v1.e"].described.Store(&description{openAPIHash: "e", openAPIV2: []byte("e"), openAPIV2Size: 1})
	if got := published(); got != "bcde" { // one byte is too much
		t.Errorf("published are %s", got)
	}
	delete(a.byName, "v1.e")
	if got := published(); got != "abcd" {
		t.Errorf("published are %s", got)
	}
}
