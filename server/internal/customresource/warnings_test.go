package customresource_test

import (
	"net/http"
	"reflect"
	"testing"
)

// TestWarnings: definitions and objects that are stored as they are, but are not
// what their authors may think, are answered with warnings, once.
func TestWarnings(t *testing.T) {
	c := start(t)
	check := func(what string, got answer, want ...string) {
		t.Helper()
		if warned := got.header.Values("Warning"); len(warned)+len(want) > 0 && !reflect.DeepEqual(warned, want) {
			t.Errorf("%s: warned %q, want %q", what, warned, want)
		}
	}
	crd := load(t, "gadgets.yaml")
	fields := at(crd, "spec.versions.1.schema.openAPIV3Schema.properties.spec.properties").(object)
	fields["odd"] = object{"type": "string", "format": "odd"}
	fields["set"] = object{"type": "array", "x-kubernetes-list-type": "set", "items": object{"type": "object", "x-kubernetes-map-type": "atomic"}}
	check("definition", c.do(http.MethodPost, definitions, crd).is(http.StatusCreated),
		`299 - "unrecognized format \"odd\""`,
		`299 - "x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side apply or CEL validation rules"`)
	check("the same again", c.redefine("gadgets.example.com", func(crd object) { properties(crd, "1")["more"] = object{"type": "string", "format": "odd"} }).is(http.StatusOK))
	const gadgets = "/apis/example.com/v1/gadgets"
	body := object{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": object{"name": "it", "finalizers": []any{"one", "two.example.com", "example.com/three", "orphan"}}}
	one := `299 - "metadata.finalizers: \"one\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"`
	two := `299 - "metadata.finalizers: \"two.example.com\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"`
	check("dry run", c.do(http.MethodPost, gadgets+"?dryRun=All", body).is(http.StatusCreated), one, two)
	check("object", c.do(http.MethodPost, gadgets, body).is(http.StatusCreated), one, two)
	check("the object again", c.merge(gadgets+"/it", object{"metadata": object{"labels": object{"a": "b"}}}).is(http.StatusOK))
	check("an inactive kind", c.do(http.MethodPost, "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
		object{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": object{"name": "it"}, "spec": object{"podSelector": object{}}}).is(http.StatusCreated),
		`299 - "a NetworkPolicy is not enforced here"`)
}
