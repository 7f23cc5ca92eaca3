package subresource_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/subresource"
)

// TestCreateTokenNeedsAToken: an empty token would be sent as one, and refused much
// later.
func TestCreateTokenNeedsAToken(t *testing.T) {
	for body, says := range map[string]string{
		`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"t"}}`: "",
		`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{}}`:            "the server's answer has none",
		`{"kind":"Status","apiVersion":"v1","status":"Success"}`:                                 "the answer is a Status",
		"": "the answer is empty",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(body))
		}))
		c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		status, err := subresource.CreateToken(t.Context(), client.For[*corev1.ServiceAccount](c).Namespace("a"), "default", authenticationv1.TokenRequestSpec{})
		if says == "" && (err != nil || status.Token != "t") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: got %q, %v", body, status.Token, err)
		}
		c.CloseIdleConnections()
		server.Close()
	}
}

// TestCreateTokenKeepsItsSpec: a server that shortens the lifetime must not change that of the
// program's later requests.
func TestCreateTokenKeepsItsSpec(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":["b"],"expirationSeconds":600},"status":{"token":"t"}}`))
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	seconds := int64(7200)
	spec := authenticationv1.TokenRequestSpec{Audiences: []string{"a"}, ExpirationSeconds: &seconds}
	if _, err := subresource.CreateToken(t.Context(), client.For[*corev1.ServiceAccount](c).Namespace("a"), "default", spec); err != nil {
		t.Fatal(err)
	}
	if seconds != 7200 || spec.Audiences[0] != "a" {
		t.Errorf("the caller's spec has %d seconds and the audiences %v", seconds, spec.Audiences)
	}
}
