package customresources

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// request is one request, to both servers.
type request struct {
	name         string // of the test
	method, path string
	body         string
	headers      map[string]string
	// differs says why the answers differ; "" if they must not.
	differs string
}

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	shirts      = "/apis/tests.example.com/v1/namespaces/default/shirts"
	beta        = "/apis/tests.example.com/v1beta1/namespaces/default/shirts"
	inStore     = "/registry/tests.example.com/shirts/default/"
)

var (
	jsonPatch      = map[string]string{"Content-Type": "application/json-patch+json"}
	mergePatch     = map[string]string{"Content-Type": "application/merge-patch+json"}
	strategicPatch = map[string]string{"Content-Type": "application/strategic-merge-patch+json"}
	applyPatch     = map[string]string{"Content-Type": "application/apply-patch+yaml"}
)

// load returns a document of testdata as JSON.
func load(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// define creates a definition and waits until the server serves it, by the paths of its versions: each has
// a cache of its own upstream, which answers lists with 429 until it is there.
func (p *peer) define(body, name string, served ...string) {
	p.t.Helper()
	if got := p.ask(request{method: "POST", path: definitions, body: body}); got.code != http.StatusCreated {
		p.t.Fatalf("%s: %d %v", p.name, got.code, got.body)
	}
	p.until(request{method: "GET", path: definitions + "/" + name}, func(a answer) bool { return strings.Contains(text(a.body), `"status":"True","type":"Established"`) })
	for _, path := range served {
		p.until(request{method: "GET", path: path}, func(a answer) bool { return a.code == http.StatusOK })
	}
}

func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// compare fails the test if the servers answer differently.
func compare(t *testing.T, what string, upstream, ours any) {
	t.Helper()
	if reflect.DeepEqual(upstream, ours) {
		return
	}
	t.Errorf("%s:\nupstream  %s\nlevelwire %s", what, text(upstream), text(ours))
}

// same sends a request to both and compares the answers.
func same(t *testing.T, both []*peer, r request) {
	t.Helper()
	one, other := both[0].ask(r), both[1].ask(r)
	if one.code == http.StatusNotFound && other.code == one.code && reflect.TypeOf(one.body) != reflect.TypeOf(other.body) {
		return // this upstream server has no text for paths that it does not serve
	}
	equal := reflect.DeepEqual(one, other)
	switch {
	case equal && r.differs != "":
		t.Errorf("%s: the answers do not differ any more: %d %s", r.name, one.code, text(one.body))
	case !equal && r.differs == "":
		t.Errorf("%s: %s %s:\nupstream  %d %q %s\nlevelwire %d %q %s", r.name, r.method, r.path,
			one.code, one.warnings, text(one.body), other.code, other.warnings, text(other.body))
	}
}

// TestSameAnswers plays the same requests, one after the other, to both servers.
func TestSameAnswers(t *testing.T) {
	both := peers(t)
	for _, p := range both {
		p.define(load(t, "shirts.yaml"), "shirts.tests.example.com", shirts, beta)
	}
	for _, r := range requests {
		same(t, both, r)
	}
	for _, name := range []string{"beta", "status"} {
		compare(t, "stored "+name, both[0].stored(inStore+name), both[1].stored(inStore+name))
	}
	schema := request{method: "GET", path: "/openapi/v3/apis/tests.example.com/v1"}
	has := func(a answer) bool { return schemaOf(a) != nil }
	compare(t, "schema", schemaOf(both[0].until(schema, has)), schemaOf(both[1].until(schema, has)))
}

// schemaOf returns what a document of OpenAPI says of shirts.
func schemaOf(a answer) any {
	document, _ := a.body.(map[string]any)
	components, _ := document["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	return schemas["com.example.tests.v1.Shirt"]
}

// TestSameStore gives both servers values that others have written: an object that
// no server would have stored, and a definition as upstream stores it.
func TestSameStore(t *testing.T) {
	both := peers(t)
	for _, p := range both {
		p.define(load(t, "shirts.yaml"), "shirts.tests.example.com", shirts, beta)
		p.write(inStore+"theirs", `{"apiVersion":"tests.example.com/v1","kind":"Shirt","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z",`+
			`"labels":{"good":"yes","bad":1},"annotations":{"bad":{}},"name":"theirs","namespace":"default","odd":1,"uid":"6e1f4b1a-0f3a-4b6c-9f3a-6f0d3a1b2c3d"},`+
			`"odd":1,"spec":{"size":null,"odd":1,"stripes":["a"]}}`)
		p.until(request{method: "GET", path: shirts + "/theirs"}, func(a answer) bool { return a.code == http.StatusOK })
	}
	for _, path := range []string{shirts + "/theirs", beta + "/theirs", shirts} {
		same(t, both, request{name: "of another writer", method: "GET", path: path})
	}

	const key, name = "/registry/apiextensions.k8s.io/customresourcedefinitions/", "socks.tests.example.com"
	socks := strings.NewReplacer("shirts", "socks", "Shirt", "Sock", `"st"`, `"so"`, "shirt", "sock").Replace(load(t, "shirts.yaml"))
	lists := []string{"/apis/tests.example.com/v1/socks", "/apis/tests.example.com/v1beta1/socks"}
	both[0].define(socks, name, lists...)
	stored := string(both[0].read(key + name))
	if !strings.Contains(stored, "apiextensions.k8s.io/v1beta1") {
		t.Fatalf("upstream stores %s", stored)
	}
	both[1].write(key+name, stored)
	for _, path := range lists {
		both[1].until(request{method: "GET", path: path}, func(a answer) bool { return a.code == http.StatusOK })
	}
	same(t, both, request{name: "stored as v1beta1", method: "GET", path: definitions + "/" + name})
	same(t, both, request{name: "its version", method: "GET", path: lists[1]})
}

// TestSameEnd deletes a definition one of whose objects stays for a while.
func TestSameEnd(t *testing.T) {
	both := peers(t)
	for _, p := range both {
		p.define(load(t, "shirts.yaml"), "shirts.tests.example.com", shirts, beta)
	}
	for _, r := range []request{
		{name: "an object that stays", method: "POST", path: shirts, body: `{"apiVersion":"tests.example.com/v1","kind":"Shirt","metadata":{"name":"kept","finalizers":["example.com/keep"]}}`},
		{name: "the definition's end", differs: "the mark is a new generation, with a grace period of 0, as for every kind", method: "DELETE", path: definitions + "/shirts.tests.example.com"},
	} {
		same(t, both, r)
	}
	// Upstream refuses objects when its handler has seen the mark.
	another := request{method: "POST", path: shirts + "?dryRun=All", body: `{"apiVersion":"tests.example.com/v1","kind":"Shirt","metadata":{"name":"another"}}`}
	for _, p := range both {
		p.until(another, func(a answer) bool { return a.code == http.StatusForbidden })
	}
	for _, r := range []request{
		{name: "a new object", method: "POST", path: shirts, body: `{"apiVersion":"tests.example.com/v1","kind":"Shirt","metadata":{"name":"new"}}`},
		{name: "an applied object", method: "PATCH", path: shirts + "/applied?fieldManager=a", headers: applyPatch, body: `{"apiVersion":"tests.example.com/v1","kind":"Shirt","metadata":{"name":"applied"}}`},
	} {
		same(t, both, r)
	}
	for _, p := range both {
		p.until(request{method: "GET", path: shirts + "/kept"}, func(a answer) bool { return strings.Contains(text(a.body), "deletionTimestamp") })
	}
	same(t, both, request{name: "the object that stays", method: "GET", path: shirts + "/kept"})
	same(t, both, request{name: "the object that goes", method: "PATCH", path: shirts + "/kept", headers: mergePatch, body: `{"metadata":{"finalizers":null}}`})
	for _, p := range both {
		p.until(request{method: "GET", path: definitions + "/shirts.tests.example.com"}, func(a answer) bool { return a.code == http.StatusNotFound })
	}
}

// TestSameConditions compares the statuses of definitions that are not established.
func TestSameConditions(t *testing.T) {
	both := peers(t)
	for name, want := range map[string]string{"untrusted.yaml": "InvalidCABundle"} {
		crd := request{method: "GET", path: definitions + "/hats.tests.example.com"}
		var statuses []any
		for _, p := range both {
			p.ask(request{method: "POST", path: definitions, body: load(t, name)})
			got := p.until(crd, func(a answer) bool { return strings.Contains(text(a.body), want) })
			statuses = append(statuses, got.body.(map[string]any)["status"])
		}
		compare(t, name, statuses[0], statuses[1])
	}
}
