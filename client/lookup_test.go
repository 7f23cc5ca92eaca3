package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestLookups: a name is looked up for a connection, and not for each request. An address is not looked up.
func TestLookups(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}`)
	}))
	defer server.Close()
	for _, host := range []string{"localhost", "127.0.0.1"} {
		seen := &observed{}
		client, err := New(&rest.Config{Host: strings.Replace(server.URL, "127.0.0.1", host, 1)}, Options{Observer: seen})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := For[*corev1.Pod](client).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		client.CloseIdleConnections()
		if first, second := seen.attempts[0], seen.attempts[1]; (first.Lookup > 0) != (host == "localhost") || first.Lookup > first.Duration || second.Lookup != 0 {
			t.Errorf("%s: looked up in %v of %v, then in %v", host, first.Lookup, first.Duration, second.Lookup)
		}
	}
}
