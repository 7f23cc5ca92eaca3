package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

func TestRawAnswersWithAnyStatus(t *testing.T) {
	rec := &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Seen", r.Header.Get("X-Sent")+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "[-]etcd failed")
	}}
	server := httptest.NewServer(rec)
	defer server.Close()
	seen := &observed{}
	c, err := New(&rest.Config{Host: server.URL + "/base", BearerToken: "secret"}, Options{Observer: seen})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	resp, err := c.Raw(t.Context(), RawRequest{Path: "/healthz?verbose&exclude=a%2Fb", Header: http.Header{"X-Sent": {"yes"}}})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 500 || string(body) != "[-]etcd failed" || resp.Header.Get("X-Seen") != "yes Bearer secret" {
		t.Errorf("%d %q %v, %v", resp.StatusCode, body, resp.Header, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if got := rec.last(t); got.method != "GET" || got.uri != "/base/healthz?verbose&exclude=a%2Fb" {
		t.Errorf("the server saw %+v", got)
	}
	if infos := seen.requests; len(infos) != 1 || infos[0].Verb != "raw" || infos[0].Code != 500 || infos[0].Received != int64(len(body)) {
		t.Errorf("observed %+v", infos)
	}

	resp, err = c.Raw(t.Context(), RawRequest{Method: "POST", Path: "/api/v1/namespaces/a/services/http:b%2Fc:80/proxy/x",
		Body: []byte("hello"), Header: http.Header{"Content-Type": {"text/plain"}}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := rec.last(t); got.method != "POST" || got.uri != "/base/api/v1/namespaces/a/services/http:b%2Fc:80/proxy/x" ||
		got.body != "hello" || got.contentType != "text/plain" {
		t.Errorf("the server saw %+v", got)
	}
}

func TestRawRefusesPathsThatLeaveTheServer(t *testing.T) {
	rec := &recorder{}
	c, _ := serve(t, Options{}, rec)
	for _, path := range []string{"", "version", "//example.com/version", "http://example.com/", "/a#b", "/%zz"} {
		if _, err := c.Raw(t.Context(), RawRequest{Path: path}); err == nil {
			t.Errorf("%q: no error", path)
		}
	}
	if len(rec.all) > 0 {
		t.Errorf("requests were sent: %+v", rec.all)
	}
}

// A 429 with Retry-After is waited for; the last answer is returned.
func TestRawHonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, "try later")
		}}
		c, _ := serve(t, Options{Retry: RetryOptions{Max: 2}}, rec)
		resp, err := c.Raw(t.Context(), RawRequest{Path: "/version"})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 429 || string(body) != "try later" || len(rec.all) != 3 {
			t.Errorf("%d %q after %d attempts, %v", resp.StatusCode, body, len(rec.all), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if resp, err = c.Raw(ctx, RawRequest{Path: "/version"}); err != nil || resp.StatusCode != 429 {
			t.Errorf("with a deadline before the next attempt: %v, %v", resp, err)
		} else {
			_ = resp.Body.Close()
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = c.Raw(ended, RawRequest{Path: "/version"}); !errors.Is(err, context.Canceled) {
			t.Errorf("after the context's end: %v", err)
		}
	})
}
