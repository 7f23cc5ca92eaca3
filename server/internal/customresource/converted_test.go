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
// answered with what a client reads next, and not with what was sent: with the defaults of
// both versions, and without the fields that the stored one does not have. So is a dry run of it.
func TestAnswersShowWhatIsStored(t *testing.T) {
	const stored, beta = "/apis/example.com/v1/namespaces/default/shirts", "/apis/example.com/v1beta1/namespaces/default/shirts"
	shirt := func(spec object) object {
		return object{"apiVersion": "example.com/v1beta1", "kind": "Shirt", "metadata": object{"name": "it"}, "spec": spec}
	}
	create := func(c *cluster) { c.do(http.MethodPost, beta, shirt(object{"color": "red"})).is(http.StatusCreated) }
	none := func(*cluster) {}
	read := func(c *cluster) object { // as a PUT sends it, without what has a default in either version
		it := c.get(beta + "/it").is(http.StatusOK).object()
		it["spec"] = object{"old": "y"}
		return it
	}
	for _, tt := range []struct {
		name   string
		before func(*cluster)
		write  func(c *cluster, query string) answer
		code   int
	}{
		{"create", none, func(c *cluster, query string) answer {
			return c.do(http.MethodPost, beta+query, shirt(object{"old": "x"}))
		}, 201},
		{"update", create, func(c *cluster, query string) answer { return c.do(http.MethodPut, beta+"/it"+query, read(c)) }, 200},
		{"merge patch", create, func(c *cluster, query string) answer {
			return c.do(http.MethodPatch, beta+"/it"+query, object{"spec": object{"color": nil, "old": "y"}}, mergePatch)
		}, 200},
		{"JSON patch", create, func(c *cluster, query string) answer {
			return c.do(http.MethodPatch, beta+"/it"+query, []object{{"op": "remove", "path": "/spec/color"}, {"op": "add", "path": "/spec/old", "value": "y"}}, jsonPatch)
		}, 200},
		{"apply of a new object", none, func(c *cluster, query string) answer {
			return c.do(http.MethodPatch, beta+"/it"+query+"&fieldManager=a", shirt(object{"old": "x"}), applyPatch)
		}, 201},
		{"apply", func(c *cluster) {
			c.do(http.MethodPatch, beta+"/it?fieldManager=a", shirt(object{"color": "red"}), applyPatch).is(http.StatusCreated)
		}, func(c *cluster, query string) answer {
			return c.do(http.MethodPatch, beta+"/it"+query+"&fieldManager=a", shirt(object{"old": "y"}), applyPatch)
		}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t)
			defineShirts(c)
			tt.before(c)
			check := func(what, version string, got answer, code int) {
				t.Helper()
				shown := got.is(code).object()
				if want := any(object{"color": "white", "size": "XL"}); !reflect.DeepEqual(shown["spec"], want) || shown["apiVersion"] != version {
					t.Errorf("%s: %v", what, shown)
				}
			}
			check("dry run", "example.com/v1beta1", tt.write(c, "?dryRun=All"), tt.code)
			check("write", "example.com/v1beta1", tt.write(c, "?fieldValidation=Warn"), tt.code)
			check("read", "example.com/v1beta1", c.get(beta+"/it"), 200)
			check("read in the stored version", "example.com/v1", c.get(stored+"/it"), 200)
			if tt.code == http.StatusOK {
				check("again", "example.com/v1beta1", tt.write(c, "?fieldValidation=Warn"), tt.code)
			}
		})
	}
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
