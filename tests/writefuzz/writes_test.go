package writefuzz

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

const (
	seeds        = 250 // that run as an ordinary test
	requestsEach = 10
	timeout      = 2 * time.Minute // for one answer
)

// FuzzWrites: what is sent depends on the seed and the value, which fields get beside odd ones.
// Everything is a dry run, so that each seed meets the same objects.
func FuzzWrites(f *testing.F) {
	for seed := range uint64(seeds) {
		f.Add(seed, "")
	}
	for i, value := range []string{`[{"name":"x","name":"y"}]`, `{"kind":"List"}`, "\xff", "---", `"` + strings.Repeat("9", 400) + `"`} {
		f.Add(uint64(seeds+i), value)
	}
	s := newServer(f)
	f.Fuzz(func(t *testing.T, seed uint64, value string) {
		m := &mutator{Rand: rand.New(rand.NewPCG(seed, 0)), odd: odd, names: s.names, parts: s.parts}
		if text, err := json.Marshal(value); err == nil && value != "" {
			m.odd = append(slices.Clone(odd), text)
			if json.Valid([]byte(value)) {
				m.odd = append(m.odd, json.RawMessage(value))
			}
		}
		for range requestsEach {
			s.write(t, m, value)
		}
	})
}

// kind is a resource that can be created, with an object of it that the server has.
type kind struct {
	path         string // of the collection
	name         string
	manifest     any
	stored       any
	subresources []string
}

type server struct {
	url    string
	client *http.Client
	kinds  []*kind
	names  []string
	parts  map[string][]any
}

// newServer starts a server and creates an object of every kind of which there is a manifest.
func newServer(f *testing.F) *server {
	f.Helper()
	started := levelwiretest.StartInMemory(f)
	config := started.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		f.Fatal(err)
	}
	client.Timeout = timeout
	s := &server{url: config.Host, client: client, parts: map[string][]any{}}
	manifests := readManifests(f)
	manifests[widgetVersion+" Widget"] = s.define(f)
	for _, prefix := range s.versions(f) {
		var list metav1.APIResourceList
		s.read(f, prefix, &list)
		for _, r := range list.APIResources {
			manifest := manifests[list.GroupVersion+" "+r.Kind]
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "create") {
				continue
			}
			if manifest == nil {
				manifest = map[string]any{"apiVersion": list.GroupVersion, "kind": r.Kind, "metadata": map[string]any{"name": "example"}}
			}
			s.add(f, prefix, r, manifest, list.APIResources)
		}
	}
	for _, k := range s.kinds {
		for _, path := range pathsOf(k.stored, nil, nil) {
			if len(path) == 0 {
				continue
			}
			if name, ok := path[len(path)-1].(string); ok {
				s.parts[name] = append(s.parts[name], at(k.stored, path))
			}
		}
	}
	s.names = slices.Sorted(maps.Keys(s.parts))
	if len(s.kinds) < 60 {
		f.Fatalf("%d kinds can be created, so this test tests little", len(s.kinds))
	}
	return s
}

const widgetVersion = "example.com/v1"

// widgets is a custom resource, of which some is in a schema, some is preserved, and some has rules.
const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{
	"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
	"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
		"selectableFields":[{"jsonPath":".spec.color"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","x-kubernetes-validations":[{"rule":"!has(self.replicas) || self.replicas < 100"}],"properties":{
				"replicas":{"type":"integer","minimum":0,"default":1},"color":{"type":"string","enum":["red","blue"]},
				"any":{"x-kubernetes-preserve-unknown-fields":true},"port":{"x-kubernetes-int-or-string":true},
				"template":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
				"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{
					"name":{"type":"string"},"value":{"type":"string","nullable":true}}}}}},
			"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}`

// define defines a custom resource and returns an object of it.
func (s *server) define(f *testing.F) any {
	f.Helper()
	code, answer, err := s.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", []byte(widgets))
	if err != nil || code != http.StatusCreated {
		f.Fatalf("define widgets: %d %s (%v)", code, answer, err)
	}
	var object any
	if err := yaml.Unmarshal([]byte(`{apiVersion: example.com/v1, kind: Widget, metadata: {name: example}, spec: {replicas: 2, color: red, any: {a: [1, null, {b: c}]}, port: http,
		template: {apiVersion: v1, kind: Secret, metadata: {name: a, labels: {b: c}}, x: y}, items: [{name: a, value: null}, {name: b, value: c}]}, status: {replicas: 1}}`), &object); err != nil {
		f.Fatal(err)
	}
	return object
}

// add creates the object of a kind. What cannot be created is written, all the same.
func (s *server) add(f *testing.F, prefix string, r metav1.APIResource, manifest any, all []metav1.APIResource) {
	f.Helper()
	k := &kind{path: prefix + "/" + r.Name, manifest: manifest, stored: manifest}
	if r.Namespaced {
		k.path = prefix + "/namespaces/default/" + r.Name
	}
	k.name, _ = at(manifest, []any{"metadata", "name"}).(string)
	for _, sub := range all {
		name, ok := strings.CutPrefix(sub.Name, r.Name+"/")
		if ok && !slices.Contains([]string{"proxy", "exec", "attach", "portforward", "log"}, name) {
			k.subresources = append(k.subresources, "/"+name)
		}
	}
	s.kinds = append(s.kinds, k)
	body, err := json.Marshal(manifest)
	if err != nil {
		f.Fatal(err)
	}
	code, answer, err := s.send(http.MethodPost, k.path, "application/json", body)
	if err != nil || code >= http.StatusInternalServerError {
		f.Fatalf("create %s: %d %s (%v)", body, code, answer, err)
	}
	if code == http.StatusCreated {
		if err := json.Unmarshal(answer, &k.stored); err != nil {
			f.Fatal(err)
		}
	}
}

// versions returns the paths of all groups and versions.
func (s *server) versions(f *testing.F) []string {
	var groups metav1.APIGroupList
	s.read(f, "/apis", &groups)
	paths := []string{"/api/v1"}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			paths = append(paths, "/apis/"+version.GroupVersion)
		}
	}
	return paths
}

func (s *server) read(f *testing.F, path string, into any) {
	f.Helper()
	code, answer, err := s.send(http.MethodGet, path, "", nil)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d %s", code, answer)
	}
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		f.Fatalf("read %s: %v", path, err)
	}
}

// readManifests returns the objects of the comparison with kube-apiserver, by version and kind.
func readManifests(f *testing.F) map[string]any {
	f.Helper()
	files, err := filepath.Glob("../differential/objects/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no manifests (%v)", err)
	}
	manifests := map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				f.Fatalf("%s: %v", file, err)
			}
			if object != nil {
				manifests[fmt.Sprint(object["apiVersion"], " ", object["kind"])] = object
			}
		}
	}
	return manifests
}

// patches are the types of patches, with what a query needs.
var patches = []struct{ mediaType, query string }{
	{"application/merge-patch+json", ""}, {"application/strategic-merge-patch+json", ""}, {"application/json-patch+json", ""},
	{"application/apply-patch+yaml", "&fieldManager=fuzz&force=true"},
}

// deleteOptions are the body of a DELETE, with each field that it can have.
var deleteOptions any = map[string]any{
	"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 1.0, "propagationPolicy": "Orphan", "orphanDependents": true, "dryRun": []any{"All"},
	"preconditions": map[string]any{"uid": "a", "resourceVersion": "1"}, "ignoreStoreReadErrorWithClusterBreakingPotential": true,
}

// encodings are in what a body that is no patch is sent; nil: as it is.
var encodings = []struct {
	mediaType string
	of        func(text []byte) ([]byte, error)
}{{}, {}, {}, {"application/yaml", yaml.JSONToYAML}, {"application/cbor", toCBOR}}

func toCBOR(text []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return cbor.Marshal(value)
}

// write sends one request and judges the answer.
func (s *server) write(t *testing.T, m *mutator, raw string) {
	t.Helper()
	k := pick(m, s.kinds)
	object := m.mutate(pick(m, []any{k.manifest, k.stored}))
	path, query, mediaType := k.path, "?dryRun=All", "application/json"
	if m.IntN(4) == 0 {
		query += "&fieldValidation=" + pick(m, []string{"Ignore", "Warn", "Strict"})
	}
	method := pick(m, []string{http.MethodPost, http.MethodPut, http.MethodPut, http.MethodPatch, http.MethodPatch, http.MethodPatch, http.MethodDelete})
	if method != http.MethodPost && (method != http.MethodDelete || m.IntN(4) > 0) || len(k.subresources) > 0 && m.IntN(3) == 0 {
		path += "/" + k.name
		if len(k.subresources) > 0 && m.IntN(3) == 0 {
			path += pick(m, k.subresources)
		}
	}
	body := object
	switch method {
	case http.MethodPost:
		object = set(object, []any{"metadata", "resourceVersion"}, removed{})
		if m.IntN(2) == 0 {
			body = set(object, []any{"metadata", "name"}, "another")
		}
	case http.MethodPatch:
		patch := pick(m, patches)
		mediaType, query = patch.mediaType, query+patch.query
		switch mediaType {
		case "application/json-patch+json":
			body = m.patch(k.stored)
		case "application/apply-patch+yaml":
			body = set(object, []any{"metadata", "managedFields"}, removed{})
		}
	case http.MethodDelete:
		body = m.mutate(deleteOptions)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if encode := pick(m, encodings); mediaType == "application/json" && encode.of != nil {
		if other, err := encode.of(text); err == nil { // a text that has no such form stays JSON
			mediaType, text = encode.mediaType, other
		}
	}
	if raw != "" && m.IntN(requestsEach) == 0 {
		text = []byte(raw)
	}
	code, answer, err := s.send(method, path+query, mediaType, text)
	if err != nil || code >= http.StatusInternalServerError && !upstreams(answer) {
		t.Errorf("%s %s %s\n%s\nis answered with %d %s (%v)", method, path+query, mediaType, text, code, answer, err)
	}
}

// upstreams reports whether kube-apiserver answers with a 500 of its own: an applied object that
// does not fit the schema.
func upstreams(answer []byte) bool {
	return bytes.Contains(answer, []byte("failed to create typed patch object")) || bytes.Contains(answer, []byte("failed to convert new object"))
}

func (s *server) send(method, path, mediaType string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
