package relay

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// standIn is an upstream that only answers what a test needs, and tells what it got.
func standIn(t *testing.T, serve http.HandlerFunc) *rest.Config {
	t.Helper()
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			fmt.Fprintln(w, "{}")
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"): // the relay asks what it may do
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintln(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
		case strings.HasPrefix(r.URL.Path, "/apis/rbac.authorization.k8s.io/"): // it follows roles if there are any
			http.NotFound(w, r)
		default:
			serve(w, r)
		}
	}))
	t.Cleanup(upstream.Close)
	return &rest.Config{Host: upstream.URL, BearerToken: "of the relay", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// TestUpgradesArePassedOn, as exec and port-forward need them, in both directions, with the
// relay's credentials and not the client's.
func TestUpgradesArePassedOn(t *testing.T) {
	relay := startRelay(t, standIn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of the relay" || !strings.HasSuffix(r.URL.Path, "/pods/p/exec") || r.URL.Query().Get("command") != "sh" {
			http.Error(w, "unexpected", http.StatusTeapot)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		line, err := buffered.ReadString('\n')
		if err == nil {
			fmt.Fprint(conn, "you said "+line)
		}
	}))
	config := relay.Config()
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", hostOf(t, relay), &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}) //nolint:gosec // It is the test's own.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(3 * time.Minute))
	fmt.Fprint(conn, "POST /api/v1/namespaces/default/pods/p/exec?command=sh HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", response, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := reader.ReadString('\n'); line != "you said hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestLogsArePassedOn while they are written.
func TestLogsArePassedOn(t *testing.T) {
	more := make(chan string)
	relay := startRelay(t, standIn(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush() // the answer begins before there is a line
		for line := range more {
			fmt.Fprintln(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	response, err := relay.Client(client.Options{}).Raw(t.Context(), client.RawRequest{Path: "/api/v1/namespaces/default/pods/p/log?follow=true"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	for _, text := range []string{"one", "two"} {
		more <- text
		if line, err := lines.ReadString('\n'); line != text+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	close(more)
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Error(err)
	}
}

// TestUsersAreImpersonated when their requests are passed on, whatever they claim to be.
func TestUsersAreImpersonated(t *testing.T) {
	got := make(chan http.Header, 1)
	config := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case got <- r.Header.Clone():
		default:
		}
		w.WriteHeader(http.StatusTeapot)
	})
	other := levelwiretest.Start(t)
	relay := startRelay(t, config, acceptUsersOf(other))
	c := userAt(t, relay, other.UserConfig("jane", "dev", "ops"))
	response, err := c.Raw(t.Context(), client.RawRequest{Method: "POST", Path: "/api/v1/namespaces", Header: http.Header{
		"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "Authorization": {"Bearer secret"}, "Impersonate-Extra-Scopes": {"x"},
	}, Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusTeapot {
		t.Logf("refused with %d: a claim was not believed", response.StatusCode)
		if response, err = c.Raw(t.Context(), client.RawRequest{Method: "POST", Path: "/api/v1/namespaces", Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	header := <-got
	if header.Get("Impersonate-User") != "jane" || strings.Join(header.Values("Impersonate-Group"), " ") != "dev ops" || header.Get("Authorization") != "Bearer of the relay" {
		t.Errorf("%v", header)
	}
	for name := range header {
		if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "Impersonate-Extra-Scopes") {
			t.Errorf("%s is passed on", name)
		}
	}
}

// inItsOwnWords has an upstream answer for the nodes of a namespace as no Status does.
type inItsOwnWords struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i inItsOwnWords) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(req)
	if err == nil && req.URL.Path == nodesOfNamespace {
		_ = response.Body.Close()
		response.Body, response.ContentLength = io.NopCloser(strings.NewReader("no such place")), -1
		response.Header.Del("Content-Length")
		response.Header.Del("Content-Encoding")
	}
	return response, err
}

const nodesOfNamespace = "/api/v1/namespaces/default/nodes"

// TestPathsOfAnotherScopeArePassedOn, also when the kind is cached: that there are none, the upstream says in its own words.
func TestPathsOfAnotherScopeArePassedOn(t *testing.T) {
	config := levelwiretest.Start(t).Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return inItsOwnWords{next} })
	relay := startRelay(t, config)
	if response, body := fetch(t, relay, "/api/v1/nodes?resourceVersion=0", nil); response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, body)
	}
	if response, body := fetch(t, relay, nodesOfNamespace, nil); response.StatusCode != http.StatusNotFound || body != "no such place" {
		t.Errorf("%s, %q, want the upstream's answer", response.Status, body)
	}
}
