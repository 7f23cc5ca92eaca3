package apiserver

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWrongPathsAndMethods(t *testing.T) {
	c := newCluster(t)
	seed(c)
	for _, tt := range []struct {
		method, path string
		code         int
		reason       metav1.StatusReason
		message      string
	}{
		{"GET", "/api/v1/gadgets", 404, metav1.StatusReasonNotFound, "the server could not find the requested resource"},
		{"GET", "/api/v2/pods", 404, metav1.StatusReasonNotFound, "could not find"},
		{"GET", "/apis/none.example.com/v1/things", 404, metav1.StatusReasonNotFound, "could not find"},
		{"GET", "/nothing/here", 404, metav1.StatusReasonNotFound, "could not find"},
		{"GET", "/api/v1/namespaces/a/nodes", 404, metav1.StatusReasonNotFound, "could not find"},
		{"GET", "/api/v1/pods/one", 404, metav1.StatusReasonNotFound, "could not find"},
		{"GET", "/api/v1/namespaces/a/pods/one/nothing", 404, metav1.StatusReasonNotFound, "could not find"},
		{"POST", "/api/v1/pods", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"DELETE", "/api/v1/pods", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"DELETE", "/api/v1/namespaces", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"DELETE", "/api/v1/namespaces?labelSelector=a%3Db", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"PUT", "/api/v1/namespaces/a/pods", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"PATCH", "/api/v1/namespaces/a/pods", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"POST", "/api/v1/namespaces/a/pods/one", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"TRACE", "/api/v1/namespaces/a/pods/one", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"DELETE", "/api/v1/watch/pods", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"POST", "/version", 405, metav1.StatusReasonMethodNotAllowed, "does not allow this method"},
		{"GET", "/api/v1/namespaces/a/pods/one/log", 400, metav1.StatusReasonBadRequest, "logs are not available: Levelwire's kubelets simulate their pods"},
		{"POST", "/api/v1/namespaces/a/pods/one/exec", 400, metav1.StatusReasonBadRequest, "exec is not available"},
		{"GET", "/api/v1/namespaces/a/pods/one/attach", 400, metav1.StatusReasonBadRequest, "attach is not available"},
		{"POST", "/api/v1/namespaces/a/pods/one/portforward", 400, metav1.StatusReasonBadRequest, "portforward is not available"},
		{"GET", "/api/v1/namespaces/a/pods/one/proxy/index.html", 400, metav1.StatusReasonBadRequest, "proxy is not available"},
		{"GET", "/api/v1/nodes/n1/proxy/metrics", 400, metav1.StatusReasonBadRequest, "proxy is not available"},
		{"GET", "/api/v1/pods?labelSelector=%zz", 400, metav1.StatusReasonBadRequest, "query"},
	} {
		got := c.do(tt.method, tt.path, "")
		status := got.status(t)
		if got.code != tt.code || status.Reason != tt.reason || !strings.Contains(status.Message, tt.message) {
			t.Errorf("%s %s: %d %s %q, want %d %s %q", tt.method, tt.path, got.code, status.Reason, status.Message, tt.code, tt.reason, tt.message)
		}
	}
	// The whole of both, as kube-apiserver has it.
	for path, want := range map[string]string{
		"/api/v1/namespaces": `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server does not allow this method on the requested resource","reason":"MethodNotAllowed","details":{},"code":405}`,
		"/api/v1/gadgets":    `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`,
	} {
		if got := compact(t, c.do(http.MethodDelete, path, "").body); got != want {
			t.Errorf("DELETE %s: %s, want %s", path, got, want)
		}
	}
	if head := c.do(http.MethodHead, "/api/v1/pods", ""); head.code != 200 || len(head.body) != 0 {
		t.Errorf("HEAD: %d with %d bytes", head.code, len(head.body))
	}
}

// No path and no query may make the server fail: whatever is asked, the answer
// is below 500.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"/api/v1/pods?limit=1", "/apis/apps/v1/namespaces/a/deployments/b/scale", "/api/v1/watch/pods?timeoutSeconds=1", //passes: nothing is asked
		"/openapi/v3/api/v1", "/readyz/ping", "/api/v1/pods?continue=e30&fieldSelector=a%3Db"} {
		f.Add(s)
	}
	c := newCluster(f)
	seed(c)
	f.Fuzz(func(t *testing.T, path string) {
		if strings.ContainsAny(path, " #\x00\n\r\t") || !strings.HasPrefix(path, "/") || strings.Contains(path, "watch") {
			return
		}
		req, err := http.NewRequest(http.MethodGet, c.url+path, nil)
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := c.http2.Do(req)
		if err != nil {
			return // the client refuses to send it
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 500 && resp.StatusCode != http.StatusGatewayTimeout {
			t.Fatalf("GET %q: %d", path, resp.StatusCode)
		}
	})
}
