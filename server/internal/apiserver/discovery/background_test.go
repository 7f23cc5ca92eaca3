package discovery

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/openapi"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// counted is a kind whose schema counts how often it is read. It is the only one of its group.
func counted(group string, reads *atomic.Int64) *resource.Resource {
	res := thing()
	res.Group, res.StorePrefix = group, "/registry/"+group+"/things/"
	res.OpenAPI = func() *spec.Schema {
		reads.Add(1)
		return &spec.Schema{}
	}
	return res
}

// TestDocumentsAreMadeInTheBackground: of definitions that come one after the other, when there
// is quiet, and each once; a server that begins with some makes them at once. The first request
// makes nothing.
func TestDocumentsAreMadeInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old, first, second atomic.Int64
		table, err := resource.NewTable(counted("old.example.com", &old))
		if err != nil {
			t.Fatal(err)
		}
		h := NewHandler(HandlerConfig{Resources: table})
		expect := func(when string, want ...int64) {
			t.Helper()
			synctest.Wait()
			for i, reads := range []*atomic.Int64{&old, &first, &second} {
				if got := reads.Load(); got != want[i] {
					t.Errorf("%s: schema %d has been read %d times, want %d", when, i, got, want[i])
				}
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.MakeDocuments(ctx, table.Changed)
		}()
		expect("at the start", 1, 0, 0)
		one, two := counted("first.example.com", &first), counted("second.example.com", &second)
		if err := table.Add(one); err != nil {
			t.Fatal(err)
		}
		time.Sleep(quietFor - 1)
		expect("before there is quiet", 1, 0, 0)
		if err := table.Add(two); err != nil {
			t.Fatal(err)
		}
		time.Sleep(quietFor - 1)
		expect("after another one", 1, 0, 0)
		time.Sleep(time.Nanosecond)
		expect("after that", 1, 1, 1)
		for _, path := range []string{"/openapi/v3", "/openapi/v3/apis/old.example.com/v1", "/openapi/v3/apis/first.example.com/v1"} {
			w := httptest.NewRecorder()
			if h.For(path)(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != http.StatusOK {
				t.Errorf("%s is answered with %d", path, w.Code)
			}
		}
		expect("after requests", 1, 1, 1)
		changed := counted("first.example.com", &first)
		if err := table.Replace([]schema.GroupVersionResource{one.GroupVersionResource()}, changed); err != nil {
			t.Fatal(err)
		}
		time.Sleep(quietFor)
		expect("after a change", 1, 2, 1)
		stop()
		<-ended
	})
}

// TestBuiltinDocumentsFollowTheFirstReader: a server makes nothing as long as it has no
// definitions, only the documents of definitions as long as nobody reads, and then everything.
func TestBuiltinDocumentsFollowTheFirstReader(t *testing.T) {
	// What other tests have had made, or this one when it ran before, would count as made.
	others := shared
	shared = &sharedDocuments{made: make(map[string]*openAPIDocument)}
	t.Cleanup(func() { shared = others })
	synctest.Test(t, func(t *testing.T) {
		table, err := resource.NewTable(builtin.Table().Lookup("", "v1", "pods"))
		if err != nil {
			t.Fatal(err)
		}
		h := NewHandler(HandlerConfig{Resources: table})
		ended := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			h.MakeDocuments(ctx, table.Changed)
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		isMade := func(gv schema.GroupVersion) bool { return h.described().version(gv).openAPI.json.Load() != nil }
		core, one, two := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "first.example.com", Version: "v1"}, schema.GroupVersion{Group: "second.example.com", Version: "v1"}
		if isMade(core) {
			t.Error("a server that nobody asks describes its kinds")
		}
		var reads atomic.Int64
		if err := table.Add(counted(one.Group, &reads)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(quietFor)
		synctest.Wait()
		if isMade(core) || !isMade(one) {
			t.Errorf("after a definition the built-in kinds are described: %t, and its own: %t", isMade(core), isMade(one))
		}
		h.For("/openapi/v3")(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/openapi/v3", nil))
		if err := table.Add(counted(two.Group, &reads)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(quietFor)
		synctest.Wait()
		if !isMade(core) || !isMade(two) || h.described().openAPI.index.json.Load() == nil {
			t.Error("when the list of documents has been read, another one is not made after a definition")
		}
		stop()
		<-ended
	})
}

// TestServersShareBuiltinDocuments, unless they serve something else.
func TestServersShareBuiltinDocuments(t *testing.T) {
	of := func(gv schema.GroupVersion, more ...*resource.Resource) *openAPIDocument {
		table := builtin.Table()
		if err := table.Add(more...); err != nil {
			t.Fatal(err)
		}
		return NewHandler(HandlerConfig{Resources: table}).described().version(gv).openAPI
	}
	apps, batch := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Group: "batch", Version: "v1"}
	custom := thing()
	custom.Group, custom.StorePrefix = "apps", "/registry/apps/things/"
	one, another := of(apps), of(apps)
	if one != another || one == of(batch) {
		t.Error("two servers with the same kinds make a document twice, or of two groups one")
	}
	if one, another = of(apps, custom), of(apps, custom); one == of(apps) || one == another {
		t.Error("a server takes the document of one that has other kinds")
	}
	things := schema.GroupVersion{Group: "example.com", Version: "v1"}
	if one, another = of(things, thing()), of(things, thing()); one == another {
		t.Error("custom kinds of two servers have one document")
	}
}

// TestVersion2IsJoinedFromParts: a change makes the part of its own group, and the part of the
// built-in kinds never again.
func TestVersion2IsJoinedFromParts(t *testing.T) {
	table := builtin.Table()
	h := NewHandler(HandlerConfig{Resources: table})
	var first, second atomic.Int64
	one, two := counted("first.example.com", &first), counted("second.example.com", &second)
	if err := table.Add(one, two); err != nil {
		t.Fatal(err)
	}
	get := func() *openapi.Part {
		t.Helper()
		w := httptest.NewRecorder()
		h.For("/openapi/v2")(w, httptest.NewRequest(http.MethodGet, "/openapi/v2", nil))
		if w.Code != http.StatusOK {
			t.Fatalf("got %d", w.Code)
		}
		return h.documents.current.builtin.made.Load()
	}
	part := get()
	if err := table.Replace([]schema.GroupVersionResource{two.GroupVersionResource()}, counted("second.example.com", &second)); err != nil {
		t.Fatal(err)
	}
	if got := get(); got != part || part == nil || first.Load() != 1 || second.Load() != 2 {
		t.Errorf("after a change of one definition the built-in kinds were described again: %t, and the schemas have been read %d and %d times", got != part, first.Load(), second.Load())
	}
}
