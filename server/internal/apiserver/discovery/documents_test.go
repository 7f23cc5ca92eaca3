package discovery

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestUnchangedVersionsKeepTheirDocuments adds a kind and replaces it: a group
// that did not change is not described anew.
func TestUnchangedVersionsKeepTheirDocuments(t *testing.T) {
	table := builtin.Table()
	h := NewHandler(HandlerConfig{Resources: table})
	index := func() *groupVersion {
		t.Helper()
		if err := h.described().makeIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		return h.described().version(schema.GroupVersion{Group: "apps", Version: "v1"})
	}
	kept := index()
	document := kept.openAPI.json.Load()
	added, replaced := thing(), thing()
	if err := table.Add(added); err != nil {
		t.Fatal(err)
	}
	index()
	if err := table.Replace([]schema.GroupVersionResource{added.GroupVersionResource()}, replaced); err != nil {
		t.Fatal(err)
	}
	if now := index(); now != kept || now.openAPI.json.Load() != document {
		t.Error("a group that did not change was described anew")
	}
}

func thing() *resource.Resource {
	res := &resource.Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing",
		Namespaced: true, StorePrefix: "/registry/example.com/things/",
		New:     func() resource.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
	res.Columns, res.Row = builtin.Columns(res.GroupVersionKind())
	return res
}

// TestADescriptionDelaysNoOther: while the schema of one kind is being read, the
// documents of other groups are answered.
func TestADescriptionDelaysNoOther(t *testing.T) {
	table := builtin.Table()
	slow := thing()
	reading, proceed := make(chan struct{}), make(chan struct{})
	slow.OpenAPI = func() *spec.Schema {
		close(reading)
		<-proceed
		return &spec.Schema{}
	}
	if err := table.Add(slow); err != nil {
		t.Fatal(err)
	}
	h := NewHandler(HandlerConfig{Resources: table})
	get := func(path string) int {
		w := httptest.NewRecorder()
		h.For(path)(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	answered := make(chan int)
	go func() { answered <- get("/openapi/v3/apis/example.com/v1") }()
	<-reading
	done := make(chan int)
	for _, path := range []string{"/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"} {
		go func() { done <- get(path) }()
		select {
		case code := <-done:
			if code != http.StatusOK {
				t.Errorf("%s is answered with %d", path, code)
			}
		case <-time.After(3 * time.Minute):
			t.Fatalf("%s waits for the description of another group", path)
		}
	}
	close(proceed)
	if code := <-answered; code != http.StatusOK {
		t.Errorf("the description that took long is answered with %d", code)
	}
}

// TestDocumentsAreAnsweredWhole: parts of one would each be uncompressed from the beginning.
func TestDocumentsAreAnsweredWhole(t *testing.T) {
	h := NewHandler(HandlerConfig{Resources: builtin.Table()})
	get := func(path string, headers ...string) *httptest.ResponseRecorder {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		h.For(path)(w, r)
		if ranges := r.Header.Get("Range"); len(headers) > 0 && ranges == "" {
			t.Error("the handler has changed its request")
		}
		return w
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"} {
		whole := get(path)
		many := "bytes=" + strings.Repeat("-1,", 20_000) + "-1"
		for _, ranges := range []string{many, "bytes=0-99", "bytes=5-", "bytes=99999999999-", "nonsense"} {
			got := get(path, "Range", ranges, "If-Range", whole.Header().Get("ETag"))
			if got.Code != http.StatusOK || got.Header().Get("Content-Range") != "" || !bytes.Equal(got.Body.Bytes(), whole.Body.Bytes()) {
				t.Errorf("%s with Range %.20s: %d, %d bytes of %d", path, ranges, got.Code, got.Body.Len(), whole.Body.Len())
			}
		}
		if got := get(path, "Range", many, "Accept-Encoding", "gzip"); got.Code != http.StatusOK || got.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s with ranges, compressed: %d, %v", path, got.Code, got.Header())
		}
		if got := get(path, "Range", many, "If-None-Match", whole.Header().Get("ETag")); got.Code != http.StatusNotModified {
			t.Errorf("%s with ranges, and its own tag: %d", path, got.Code)
		}
	}
}
