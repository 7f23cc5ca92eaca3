package tracing

import (
	"net/http"
	"testing"
)

func TestRequestsAreNamedByVerbAndResource(t *testing.T) {
	for _, c := range []struct{ method, url, name, namespace, object string }{
		{"GET", "/api/v1/pods", "list pods", "", ""},
		{"GET", "/api/v1/pods?watch=true", "watch pods", "", ""},
		{"GET", "/api/v1/namespaces/ns/pods/p", "get pods", "ns", "p"},
		{"GET", "/api/v1/namespaces/ns/pods?watch=1&fieldSelector=metadata.name%3Dp", "watch pods", "ns", ""},
		{"POST", "/api/v1/namespaces/ns/pods", "create pods", "ns", ""},
		{"POST", "/api/v1/namespaces/ns/pods/p/eviction", "create pods/eviction", "ns", "p"},
		{"PUT", "/apis/apps/v1/namespaces/ns/deployments/d/status", "update deployments/status", "ns", "d"},
		{"PATCH", "/k8s/clusters/c1/apis/apps/v1/namespaces/ns/deployments/d", "patch deployments", "ns", "d"},
		{"DELETE", "/apis/apps/v1/namespaces/ns/deployments", "deletecollection deployments", "ns", ""},
		{"DELETE", "/api/v1/nodes/n", "delete nodes", "", "n"},
		{"GET", "/api/v1/namespaces", "list namespaces", "", ""},
		{"GET", "/api/v1/namespaces/ns", "get namespaces", "", "ns"},
		{"PUT", "/api/v1/namespaces/ns/finalize", "update namespaces/finalize", "", "ns"},
		{"GET", "/apis", "GET", "", ""},
		{"GET", "/apis/apps/v1", "GET", "", ""},
		{"GET", "/healthz", "GET", "", ""},
		{"OPTIONS", "/api/v1/pods", "options pods", "", ""},
	} {
		req, err := http.NewRequest(c.method, "https://server"+c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := parsePath(req.URL.Path)
		if got := p.spanName(p.verb(req), req.Method); got != c.name || p.namespace != c.namespace || p.name != c.object {
			t.Errorf("%s %s: %q, namespace %q, name %q", c.method, c.url, got, p.namespace, p.name)
		}
	}
}
