package customresource_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// defineShirts defines a kind with two versions whose schemas differ.
func defineShirts(c *cluster) {
	c.t.Helper()
	schema := func(spec object) object {
		status := object{"type": "object", "properties": object{"note": object{"type": "string"}, "cut": object{"type": "string", "default": "slim"}}}
		return object{"openAPIV3Schema": object{"type": "object", "properties": object{"spec": object{"type": "object", "properties": spec}, "status": status}}}
	}
	text := object{"type": "string"}
	defaulted := func(value string) object { return object{"type": "string", "default": value} }
	c.do(http.MethodPost, definitions, object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "shirts.example.com"},
		"spec": object{
			"group": "example.com", "scope": "Namespaced", "names": object{"plural": "shirts", "kind": "Shirt"},
			"versions": []any{
				object{"name": "v1", "served": true, "storage": true, "subresources": object{"status": object{}}, "schema": schema(object{"color": defaulted("white"), "size": text})},
				object{"name": "v1beta1", "served": true, "storage": false, "subresources": object{"status": object{}}, "schema": schema(object{"color": text, "size": defaulted("XL"), "old": text, "cut": defaulted("slim")})},
			},
		},
	}).is(http.StatusCreated)
}

// TestAnswersShowWhatIsStored: a write in another version than the stored one is
// answered with what a client reads next, and not with what was sent.
func TestAnswersShowWhatIsStored(t *testing.T) {
	c := start(t)
	defineShirts(c)
	const beta = "/apis/example.com/v1beta1/namespaces/default/shirts"
	shirt := func(name string) object {
		return object{"apiVersion": "example.com/v1beta1", "kind": "Shirt", "metadata": object{"name": name}, "spec": object{"old": "x"}}
	}
	want := any(object{"color": "white", "size": "XL"})
	check := func(what string, got object) {
		t.Helper()
		if !reflect.DeepEqual(got["spec"], want) || got["apiVersion"] != "example.com/v1beta1" {
			t.Errorf("%s: %v", what, got)
		}
	}
	check("dry run", c.do(http.MethodPost, beta+"?dryRun=All", shirt("it")).is(http.StatusCreated).object())
	check("create", c.do(http.MethodPost, beta, shirt("it")).is(http.StatusCreated).object())
	check("get", c.get(beta+"/it").is(http.StatusOK).object())
	check("patch", c.merge(beta+"/it", object{"spec": object{"old": "y"}}).is(http.StatusOK).object())
	check("patch again", c.merge(beta+"/it", object{"spec": object{"old": "y"}}).is(http.StatusOK).object())
}

// TestStatusWritesLeaveTheSpec: a write of the status fills in defaults of the
// status, and none of the spec, in whatever version it comes.
func TestStatusWritesLeaveTheSpec(t *testing.T) {
	c, store := startOn(t, "", "")
	defineShirts(c)
	const stored, beta = "/apis/example.com/v1/namespaces/default/shirts", "/apis/example.com/v1beta1/namespaces/default/shirts"
	c.do(http.MethodPost, stored, object{"apiVersion": "example.com/v1", "kind": "Shirt", "metadata": object{"name": "it"}, "spec": object{}}).is(http.StatusCreated)
	got := c.merge(beta+"/it/status", object{"status": object{"note": "x"}, "spec": object{"color": "red"}}).is(http.StatusOK).object()
	if !reflect.DeepEqual(got["spec"], any(object{"color": "white"})) || !reflect.DeepEqual(got["status"], any(object{"note": "x", "cut": "slim"})) {
		t.Errorf("got %v", got)
	}
	kv, err := store.Get(t.Context(), "/registry/example.com/shirts/default/it", 0)
	if err != nil || strings.Contains(string(kv.Value), "XL") {
		t.Errorf("stored as %s, %v", kv.Value, err)
	}
}

// TestInvalidCABundle: a definition whose webhook cannot be trusted is not
// established before its certificates are corrected.
func TestInvalidCABundle(t *testing.T) {
	c := start(t)
	crd := load(t, "gadgets.yaml")
	crd["spec"].(object)["conversion"] = object{"strategy": "Webhook", "webhook": object{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": object{"url": "https://localhost:1/convert", "caBundle": "bm9uc2Vuc2U="},
	}}
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
	c.until("gadgets.example.com", func(crd object) bool { return condition(crd, "Established") == "InvalidCABundle False" })
	c.redefine("gadgets.example.com", func(crd object) { delete(at(crd, "spec.conversion.webhook.clientConfig").(object), "caBundle") }).is(http.StatusOK)
	c.until("gadgets.example.com", func(crd object) bool { return condition(crd, "Established") == "InitialNamesAccepted True" })
}
