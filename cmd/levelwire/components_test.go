package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

// TestComponentsSayNothingOfWarnings: the server's warnings of deprecated kinds are not in the log of
// who runs a component, and in that of other clients.
func TestComponentsSayNothingOfWarnings(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Warning", `299 - "v1 Endpoints is deprecated in v1.33+"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"e","namespace":"default","resourceVersion":"1"}}`))
	}))
	defer server.Close()
	for name, tc := range map[string]struct {
		make   func(*rest.Config, client.Options) (*client.Client, error)
		logged bool
	}{
		"component":    {newComponentClient, false},
		"other client": {client.New, true},
	} {
		var log bytes.Buffer
		c, err := tc.make(&rest.Config{Host: server.URL}, client.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.For[*corev1.Endpoints](c).Namespace(metav1.NamespaceDefault).Get(t.Context(), "e", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		c.CloseIdleConnections()
		if logged := strings.Contains(log.String(), "deprecated"); logged != tc.logged {
			t.Errorf("%s: the warning was logged: %v, want %v", name, logged, tc.logged)
		}
	}
}
