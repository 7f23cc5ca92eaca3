package customresource_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// startOn starts a server on a store that holds a value at a key, if that is not
// empty, and which the test reads and writes, too.
func startOn(t *testing.T, key, value string) (*cluster, storage.Store) {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if key != "" {
		if _, err := store.Create(t.Context(), key, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, func(c *server.Config) {
		c.OpenStore = func(context.Context) (storage.Store, error) { return shared{store}, nil }
	}), store
}

const hatsKey = "/registry/apiextensions.k8s.io/customresourcedefinitions/hats.example.com"

// storedHats is a definition as a kube-apiserver stores it.
const storedHats = `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,` +
	`"name":"hats.example.com","uid":"6e1f4b1a-0f3a-4b6c-9f3a-6f0d3a1b2c3d"},"spec":{"additionalPrinterColumns":[{"JSONPath":".spec.size","name":"Size","type":"integer"}],` +
	`"conversion":{"strategy":"None"},"group":"example.com","names":{"kind":"Hat","listKind":"HatList","plural":"hats","singular":"hat"},"preserveUnknownFields":%t,` +
	`"scope":"Namespaced","validation":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"size":{"type":"integer"},"style":{"default":"plain","type":"string"}},"type":"object"}},"type":"object"}},` +
	`"version":"v1","versions":[{"name":"v1","served":true,"storage":true}]},"status":{"acceptedNames":{"kind":"Hat","listKind":"HatList","plural":"hats","singular":"hat"},` +
	`"conditions":[{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"no conflicts found","reason":"NoConflicts","status":"True","type":"NamesAccepted"},` +
	`{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"the initial names have been accepted","reason":"InitialNamesAccepted","status":"True","type":"Established"}],"storedVersions":["v1"]}}`

// TestDefinitionsStoredAsV1beta1: what a kube-apiserver has stored is served, and
// can be changed.
func TestDefinitionsStoredAsV1beta1(t *testing.T) {
	c, store := startOn(t, hatsKey, fmt.Sprintf(storedHats, false))
	crd := c.get(definitions + "/hats.example.com").is(http.StatusOK).object()
	if crd["apiVersion"] != "apiextensions.k8s.io/v1" || at(crd, "spec.versions.0.schema.openAPIV3Schema.type") != "object" ||
		at(crd, "spec.versions.0.additionalPrinterColumns.0.jsonPath") != ".spec.size" || at(crd, "spec.validation") != nil {
		t.Errorf("got %v", crd)
	}
	const hats = "/apis/example.com/v1/namespaces/default/hats"
	made := c.do(http.MethodPost, hats, object{"apiVersion": "example.com/v1", "kind": "Hat", "metadata": object{"name": "it"}, "spec": object{"size": 5, "odd": 1}}).
		is(http.StatusCreated).object()
	if want := (object{"size": 5., "style": "plain"}); !reflect.DeepEqual(made["spec"], any(want)) {
		t.Errorf("got %v", made)
	}
	c.redefine("hats.example.com", func(crd object) {
		properties(crd, "0")["odd"] = object{"type": "integer"}
	}).is(http.StatusOK)
	c.merge(hats+"/it", object{"spec": object{"odd": 1}}).is(http.StatusOK).says(`"odd":1`)
	kv, err := store.Get(t.Context(), hatsKey, 0)
	if err != nil || !strings.HasPrefix(string(kv.Value), `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",`) {
		t.Errorf("stored as %s, %v", kv.Value, err)
	}
}

// TestNonStructuralSchema: a definition that preserves unknown fields, which only
// v1beta1 allowed, says so in a condition, until it is corrected.
func TestNonStructuralSchema(t *testing.T) {
	c, _ := startOn(t, hatsKey, fmt.Sprintf(storedHats, true))
	crd := c.until("hats.example.com", func(crd object) bool { return condition(crd, "NonStructuralSchema") == "Violations True" })
	for _, c := range at(crd, "status.conditions").([]any) {
		if at(c, "type") == "NonStructuralSchema" && at(c, "message") != "spec.preserveUnknownFields: Invalid value: true: must be false" {
			t.Errorf("got %v", c)
		}
	}
	c.redefine("hats.example.com", func(crd object) { crd["spec"].(object)["preserveUnknownFields"] = false }).is(http.StatusOK)
	c.until("hats.example.com", func(crd object) bool { return condition(crd, "NonStructuralSchema") == "" })
}

// TestObjectsThatOthersWrite: what another program puts into the store while the
// server runs is shown pruned, defaulted, and with well-formed metadata.
func TestObjectsThatOthersWrite(t *testing.T) {
	c, store := startOn(t, "", "")
	c.define("widgets.yaml")
	watch := c.watch(widgets + "?watch=1")
	if _, err := store.Create(t.Context(), "/registry/example.com/widgets/default/theirs", []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{`+
		`"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"good":"yes","bad":1},"name":"theirs","namespace":"default","odd":1,`+
		`"uid":"6e1f4b1a-0f3a-4b6c-9f3a-6f0d3a1b2c3d"},"odd":1,"spec":{"color":"red","odd":1}}`), 0); err != nil {
		t.Fatal(err)
	}
	check := func(where string, o any) {
		t.Helper()
		if at(o, "odd") != nil || at(o, "spec.odd") != nil || at(o, "metadata.odd") != nil || at(o, "spec.size") != 1. ||
			at(o, "metadata.labels") != nil || at(o, "metadata.generation") != 1. {
			t.Errorf("%s: %v", where, o)
		}
	}
	check("watch", watch.expect("ADDED", "theirs"))
	check("get", c.get(widgets+"/theirs").is(http.StatusOK).object())
	check("list", c.get(widgets).is(http.StatusOK).object()["items"].([]any)[0])
	if got := c.get(widgets + "?labelSelector=good").is(http.StatusOK).object()["items"].([]any); len(got) != 0 {
		t.Errorf("selected by a label that it does not show: %v", got)
	}
	check("later watch", c.watch(widgets+"?watch=1").expect("ADDED", "theirs"))
	check("metadata", func() any {
		o := c.get(widgets+"/theirs", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").is(http.StatusOK).object()
		o["spec"] = object{"size": 1.}
		return o
	}())
	check("patch", c.merge(widgets+"/theirs", object{"metadata": object{"annotations": object{"a": "b"}}}).is(http.StatusOK).object())
}
