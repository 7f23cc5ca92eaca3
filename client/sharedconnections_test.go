package client

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestConnectionsOf: clients with tokens of their own share the connection of another one.
func TestConnectionsOf(t *testing.T) {
	var connections atomic.Int64
	var seen sync.Map
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"), true)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"}}`))
	}))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()

	config := &rest.Config{Host: srv.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	first, err := New(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.CloseIdleConnections()
	for _, token := range []string{"a", "b", "c"} {
		c, err := New(&rest.Config{Host: srv.URL, BearerToken: token}, Options{ConnectionsOf: first})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := For[*corev1.ConfigMap](c).Namespace("default").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, ok := seen.Load("Bearer " + token); !ok {
			t.Errorf("no request had the token %s", token)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}

// TestConnectionsOfRefused: what belongs to a connection cannot be another client's.
func TestConnectionsOfRefused(t *testing.T) {
	plain, err := New(&rest.Config{Host: "https://a.example"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t, "users")
	certPEM, keyPEM := a.issue("jane")
	withCert := rest.TLSClientConfig{CertData: certPEM, KeyData: keyPEM}
	certified, err := New(&rest.Config{Host: "https://a.example", TLSClientConfig: withCert}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		config *rest.Config
		of     *Client
		want   string
	}{
		"another host":            {&rest.Config{Host: "https://b.example"}, plain, "host is https://a.example"},
		"a certificate":           {&rest.Config{Host: "https://a.example", TLSClientConfig: withCert}, plain, "certificate"},
		"the other's certificate": {&rest.Config{Host: "https://a.example", BearerToken: "t"}, certified, "certificate"},
	} {
		if _, err := New(tt.config, Options{ConnectionsOf: tt.of}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
