package apiserver

import (
	"strings"
	"testing"
)

// TestMethodsOfSubresources: a method that a subresource does not have is refused as one of an object.
func TestMethodsOfSubresources(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", deployments, deploymentToPatch)
	for _, test := range []struct{ path, methods string }{
		{deployments + "/d/scale", "POST DELETE"},
		{deployments + "/d/status", "POST DELETE"},
		{"/api/v1/namespaces/default/finalize", "GET PATCH POST DELETE"},
		{pods + "/p/binding", "GET PUT PATCH DELETE"},
		{pods + "/p/eviction", "GET PUT PATCH DELETE"},
		{"/api/v1/namespaces/default/serviceaccounts/default/token", "GET PUT PATCH DELETE"},
	} {
		for method := range strings.FieldsSeq(test.methods) {
			if s := c.send(405, method, test.path, "").status(t); s.Message != "the server does not allow this method on the requested resource" {
				t.Errorf("%s %s: %q", method, test.path, s.Message)
			}
		}
	}
	c.send(404, "GET", deployments+"/d/invented", "")
}

// TestEvictionsOfOlderClients: policy/v1beta1 is served no more, but an Eviction of it is taken.
func TestEvictionsOfOlderClients(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"i"}]}}`)
	const eviction = `{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":{"gracePeriodSeconds":0,"preconditions":{"uid":"other"}}}`
	c.send(409, "POST", pods+"/p/eviction", eviction)
	c.send(201, "POST", pods+"/p/eviction", strings.ReplaceAll(eviction, `,"preconditions":{"uid":"other"}`, ""))
	c.send(404, "GET", pods+"/p", "")
	c.send(400, "POST", pods+"/p/eviction", strings.ReplaceAll(eviction, "v1beta1", "v2"))
}

// TestWarningsOfRefusedCreates: what the kind has to say of a valid object comes with the refusal, too.
func TestWarningsOfRefusedCreates(t *testing.T) {
	c := newWritable(t)
	const node = `{"metadata":{"name":"n"},"spec":{"externalID":"x"}}`
	for _, code := range []int{201, 409} {
		if got := c.send(code, "POST", "/api/v1/nodes", node).header.Values("Warning"); len(got) != 1 || !strings.Contains(got[0], "spec.externalID") {
			t.Errorf("%d: warnings %q", code, got)
		}
	}
	if got := c.send(422, "POST", "/api/v1/nodes", strings.Replace(node, `"n"`, `"N"`, 1)).header.Values("Warning"); len(got) != 0 {
		t.Errorf("of an invalid object: warnings %q", got)
	}
}
