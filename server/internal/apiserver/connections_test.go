package apiserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

func TestFilesAreReserved(t *testing.T) {
	if limit := listen.DefaultLimit(); newCluster(t).server.config.MaxConnections != limit {
		t.Errorf("a server that is told nothing has not the limit %d", limit)
	}
}

// TestSilentConnectionsMakeRoom: connections that are held, or on which nothing but public
// paths is asked for, keep out no client that authenticates, and end no connection of one.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	for _, http2 := range []HTTP2Server{HTTP2Levelwire, HTTP2NetHTTP} {
		t.Run(string(http2), func(t *testing.T) {
			c := newCluster(t, func(s *setup) { s.config.MaxConnections, s.config.HTTP2Server = 10, http2 })
			stream := c.watch("/api/v1/pods?watch=1&resourceVersion=1")
			c.overBoth(t, func(*testing.T) { c.get("/api/v1/pods") }) // which leaves a connection of either version
			for range 50 {
				conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "https://"))
				must(t, err)
				defer conn.Close()
			}
			testwait.Stable(t, "the connections are closed", func() (any, bool) { seen := c.server.connections.Evicted(); return seen, seen == 50-8 })
			newcomer, other := clients(c.authority)
			for _, client := range []*http.Client{newcomer, other} {
				defer client.CloseIdleConnections()
				resp := c.open(t.Context(), client, http.MethodGet, "/api/v1/pods", "")
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("a client that can say who it is: %s", resp.Status)
				}
			}
			c.put(testPod("a", "seen", nil, ""))
			stream.next()
			if n, refused := c.server.connections.Open(), c.server.connections.Refused(); n > 10 || refused != 0 {
				t.Errorf("%d are open, %d were refused", n, refused)
			}
			if got := c.get("/metrics"); !strings.Contains(string(got.body), "levelwire_connections_evicted_total 44\n") {
				t.Errorf("metrics do not have it")
			}
		})
	}
}

// TestHandshakesAreBounded: a client that does not begin with TLS is not waited for.
func TestHandshakesAreBounded(t *testing.T) {
	c := newCluster(t)
	synctest.Test(t, func(t *testing.T) {
		pipe := faultnet.NewPipe()
		defer pipe.Close()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- c.server.Serve(ctx, pipe, &tls.Config{Certificates: []tls.Certificate{{}}}) }()
		conn, err := pipe.Dial(ctx, "tcp", "x")
		must(t, err)
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		stop()
		must(t, <-served)
	})
}

// TestTooManyConnections are closed, while those that are open go on, and are counted.
func TestTooManyConnections(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.MaxConnections = 10 })
	if got := c.get("/api/v1/pods"); got.code != http.StatusOK {
		t.Fatal(got.code)
	}
	stream := c.watch("/api/v1/pods?watch=1&resourceVersion=1")
	var open []*http.Client
	for range 9 {
		client, _ := clients(c.authority)
		c.open(t.Context(), client, http.MethodGet, "/api/v1/pods", "").Body.Close()
		open = append(open, client)
	}
	for range 41 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "https://"))
		must(t, err)
		defer conn.Close()
	}
	testwait.Stable(t, "41 connections are refused", func() (any, bool) { seen := c.server.connections.Refused(); return seen, seen == 41 })
	if n := c.server.connections.Open(); n != 10 {
		t.Errorf("%d are open", n)
	}
	if got := c.post(testToken); got.code != http.StatusCreated {
		t.Errorf("on an open connection: %d %s", got.code, got.body)
	}
	c.put(testPod("a", "seen", nil, ""))
	stream.next()
	if got := c.get("/metrics"); !strings.Contains(string(got.body), "levelwire_connections_refused_total 41\n") ||
		!strings.Contains(string(got.body), "levelwire_connections 10\n") {
		t.Errorf("metrics do not have it")
	}
	for _, client := range open {
		client.CloseIdleConnections()
	}
	testwait.Stable(t, "another connection gets in", func() (any, bool) {
		client, _ := clients(c.authority)
		defer client.CloseIdleConnections()
		resp, err := client.Get(c.url + "/healthz")
		if err != nil {
			return err, false
		}
		resp.Body.Close()
		return resp.Status, resp.StatusCode == http.StatusOK
	})
}
