package garbage

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// asked starts a collector of a server that has objects but no owner, and refuses deletions
// of other versions than theirs. It returns what the server was asked since the last call.
func asked(t *testing.T, versions map[string]string) (c *Controller, requests func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[len("/api/v1/namespaces/default/configmaps/"):]
		mu.Lock()
		all = append(all, r.Method+" "+name)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fail := func(code int, reason metav1.StatusReason) {
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
		}
		version, ok := versions[name]
		var opts metav1.DeleteOptions
		switch {
		case !ok:
			fail(http.StatusNotFound, metav1.StatusReasonNotFound)
		case r.Method == http.MethodGet:
			_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%[1]q,"namespace":"default","uid":%[1]q,"resourceVersion":%[2]q,`+
				`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"owner"}]}}`, name, version)
		case r.Method == http.MethodPatch:
			_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{}}`)
		case json.NewDecoder(r.Body).Decode(&opts) != nil || opts.Preconditions == nil || *opts.Preconditions.ResourceVersion != version || string(*opts.Preconditions.UID) != name:
			fail(http.StatusConflict, metav1.StatusReasonConflict)
		default:
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		}
	}))
	t.Cleanup(s.Close)
	cl, err := client.New(&rest.Config{Host: s.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.CloseIdleConnections)
	if c, err = New(cl, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	c.kinds[schema.GroupKind{Kind: "ConfigMap"}] = kind{configMaps, true}
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { all = nil }()
		return all
	}
}

// see puts an object into the graph that has only an owner that is gone, and judges it.
func see(t *testing.T, c *Controller, name, version string) {
	t.Helper()
	c.graph.put(object{resource: configMaps, namespace: "default", name: name, uid: types.UID(name), version: version,
		owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner"}}})
	if _, err := c.reconcile(t.Context(), controller.Key{Name: name}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestOneRequestForEachObject: the server is asked once for the owner, and each object that
// is as the graph shows it takes one request.
func TestOneRequestForEachObject(t *testing.T) {
	c, requests := asked(t, map[string]string{"a": "1", "b": "2", "c": "4"})
	see(t, c, "a", "1")
	see(t, c, "b", "2")
	if got := requests(); !slices.Equal(got, []string{"GET owner", "DELETE a", "DELETE b"}) {
		t.Errorf("requests %v", got)
	}
	see(t, c, "c", "3") // the graph is late
	if got := requests(); !slices.Equal(got, []string{"DELETE c", "GET c", "DELETE c"}) {
		t.Errorf("requests for an object that has changed: %v", got)
	}
	see(t, c, "d", "1")
	if got := requests(); !slices.Equal(got, []string{"DELETE d"}) {
		t.Errorf("requests for an object that is gone: %v", got)
	}
}

func TestAbsentOwnersAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a absent
		one, other := owner{configMaps, "default", "owner", "1"}, owner{configMaps, "default", "owner", "2"}
		a.add(one)
		if !a.has(one) || a.has(other) {
			t.Error("not exactly the owner that was added is absent")
		}
		time.Sleep(absentFor)
		if a.has(one) {
			t.Error("it is not asked for again")
		}
		for n := range 3 * maxAbsent {
			a.add(owner{name: fmt.Sprint(n)})
		}
		if len(a.since)+len(a.before) > 2*maxAbsent {
			t.Errorf("%d are kept", len(a.since)+len(a.before))
		}
	})
}
