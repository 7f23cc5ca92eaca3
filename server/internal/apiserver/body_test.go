package apiserver

import (
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSlowBodiesEnd: a body that stops in the middle is given up when the
// request's time is over, and its connection's other requests go on.
func TestSlowBodiesEnd(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.RequestTimeout = 100 * time.Millisecond })
	for name, client := range map[string]*http.Client{"HTTP/1.1": c.http1, "HTTP/2": c.http2} {
		body, feed := io.Pipe()
		defer feed.Close()
		go func() { _, _ = io.WriteString(feed, `{"kind":"ConfigMap",`) }()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/api/v1/namespaces/default/configmaps", body)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		data, err := io.ReadAll(resp.Body)
		must(t, err)
		resp.Body.Close()
		got := reply{resp.StatusCode, resp.Header, data}
		if got.code != http.StatusGatewayTimeout || got.status(t).Reason != metav1.StatusReasonTimeout {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
	}
	// The time of a list would be over, too, on a busy machine.
	if got := c.get("/version"); got.code != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.code, got.body)
	}
}
