package writefuzz

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/levelwiretest"
)

// TestNumbersThatNoFloatHolds: raw JSON with one is the client's fault on every way to write it,
// and is stored on none. kube-apiserver breaks the connection off where it is in raw JSON.
func TestNumbersThatNoFloatHolds(t *testing.T) {
	config := levelwiretest.StartInMemory(t).Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = timeout
	const (
		revisions = "/apis/apps/v1/namespaces/default/controllerrevisions"
		claims    = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
		merge     = "application/merge-patch+json"
	)
	revision := func(name, data string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":%q},"revision":1,"data":%s}`, name, data)
	}
	claim := func(name, parameters string) string {
		return fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":%q},"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"x"}}],`+
			`"config":[{"opaque":{"driver":"d.example","parameters":%s}}]}}}`, name, parameters)
	}
	for _, request := range []struct {
		method, path, mediaType, body string
		want                          int
	}{
		{http.MethodPost, revisions, "application/json", revision("r", `{"a":1}`), http.StatusCreated},
		{http.MethodPost, revisions, "application/json", revision("largest", `{"a":1e308,"b":123456789012345678901234567890}`), http.StatusCreated},
		{http.MethodPost, revisions, "application/json", revision("b", `{"a":1e400}`), http.StatusBadRequest},
		{http.MethodPost, revisions, "application/json", revision("b", `{"a":{"b":[-1e309]}}`), http.StatusBadRequest},
		{http.MethodPost, revisions, "application/json", revision("b", `1e400`), http.StatusBadRequest},
		{http.MethodPost, revisions, "application/json", revision("b", `1`), http.StatusUnprocessableEntity},
		{http.MethodPut, revisions + "/r", "application/json", revision("r", `{"a":1e400}`), http.StatusBadRequest},
		{http.MethodPatch, revisions + "/r", merge, `{"data":{"a":1e400}}`, http.StatusBadRequest},
		{http.MethodPatch, revisions + "/r", "application/strategic-merge-patch+json", `{"data":{"a":1e400}}`, http.StatusBadRequest},
		{http.MethodPatch, revisions + "/r", "application/json-patch+json", `[{"op":"replace","path":"/data","value":1e400}]`, http.StatusBadRequest},
		{http.MethodPatch, revisions + "/b?fieldManager=m", "application/apply-patch+yaml", revision("b", `1e400`), http.StatusUnprocessableEntity},
		{http.MethodPost, claims, "application/json", claim("c", `{"a":1}`), http.StatusCreated},
		{http.MethodPost, claims, "application/json", claim("d", `{"a":1e400}`), http.StatusBadRequest},
		{http.MethodPatch, revisions + "/r", merge, `{"metadata":{"labels":{"a":"b"}}}`, http.StatusOK},
		{http.MethodGet, revisions + "/b", "", "", http.StatusNotFound},
		{http.MethodGet, claims + "/d", "", "", http.StatusNotFound},
	} {
		r, err := http.NewRequestWithContext(t.Context(), request.method, config.Host+request.path, strings.NewReader(request.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", request.mediaType)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != request.want {
			t.Errorf("%s %s %s: %d, want %d: %s (%v)", request.method, request.path, request.body, response.StatusCode, request.want, answer, err)
		}
	}
}
