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
	// What is applied again, and changes nothing, is warned of, too.
	const applied = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"externalID":"x"}}`
	for range 2 {
		if got := c.send(200, "PATCH", "/api/v1/nodes/n?fieldManager=m", applied, applyYAML).header.Values("Warning"); len(got) != 1 {
			t.Errorf("applied: warnings %q", got)
		}
	}
	// So is the update that lets a deleted object go.
	c.send(200, "PATCH", "/api/v1/nodes/n", `{"metadata":{"finalizers":["a.b/c"]}}`, merge)
	c.send(200, "DELETE", "/api/v1/nodes/n", "")
	if got := c.send(200, "PATCH", "/api/v1/nodes/n", `{"metadata":{"finalizers":null}}`, merge).header.Values("Warning"); len(got) != 1 {
		t.Errorf("let go: warnings %q", got)
	}
	c.send(404, "GET", "/api/v1/nodes/n", "")
	if got := c.send(422, "POST", "/api/v1/nodes", strings.Replace(node, `"n"`, `"N"`, 1)).header.Values("Warning"); len(got) != 0 {
		t.Errorf("of an invalid object: warnings %q", got)
	}
}

// TestOptionsOfEvictions: the query and the body say the same of a dry run, or nothing; options that
// no eviction has are refused. The pod stays.
func TestOptionsOfEvictions(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"i"}]}}`)
	for _, test := range []struct {
		query, options string
		code           int
		message        string
	}{
		{"", `{"dryRun":["All"]}`, 201, ""},
		{"?dryRun=All", `{"dryRun":["All"]}`, 201, ""},
		{"?dryRun=All", `{}`, 201, ""},
		{"?dryRun=All", `null`, 201, ""},
		{"?dryRun=All", `{"dryRun":["Other"]}`, 400, "Non-matching dry-run options in request and content: [All] and [Other]"},
		{"?dryRun=All", `{"dryRun":["All","All"]}`, 400, "Non-matching dry-run options in request and content: [All] and [All All]"},
		{"", `{"dryRun":["Other"]}`, 422, `DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Other"]: supported values: "All"`},
		{"", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`, 422, `Eviction.policy "p" is invalid: ` +
			"deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: can not be set for pod eviction, try after removing the option"},
	} {
		body := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":` + test.options + `}`
		if s := c.send(test.code, "POST", pods+"/p/eviction"+test.query, body).status(t); s.Message != test.message {
			t.Errorf("%s %s: %q, not %q", test.query, test.options, s.Message, test.message)
		}
	}
	c.send(200, "GET", pods+"/p", "")
}

// TestStaticPods: a kubelet runs such a pod from a file, and knows nothing of what the server would change.
func TestStaticPods(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", pods, `{"metadata":{"name":"p","annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n","containers":[{"name":"a","image":"i"}]}}`)
	for _, test := range []struct{ subresource, change, message string }{
		{"ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}}`, `Pod "p" is invalid: []: Forbidden: static pods do not support ephemeral containers`},
		{"resize", `{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}}`, `Pod "p" is invalid: []: Forbidden: static pods cannot be resized`},
	} {
		if s := c.send(422, "PATCH", pods+"/p/"+test.subresource, test.change, strategic).status(t); s.Message != test.message {
			t.Errorf("%s: %q, not %q", test.subresource, s.Message, test.message)
		}
	}
}
