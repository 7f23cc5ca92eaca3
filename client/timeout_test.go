package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The Timeout of a rest.Config ends requests whose answer does not begin, and those
// whose answer does not end, but neither watches nor streams.
func TestTimeoutOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		c, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("watch") || strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Path == "/stream" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, "{")
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}))
		t.Cleanup(synctest.Wait) // until the handlers have returned
		t.Cleanup(func() { close(over) })
		c.config.Timeout = time.Minute
		pods := For[*corev1.Pod](c).Namespace("ns")
		for what, call := range map[string]func() error{
			"get":    func() error { _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); return err },
			"list":   func() error { _, err := pods.List(t.Context(), metav1.ListOptions{}); return err },
			"delete": func() error { return pods.Delete(t.Context(), "a", metav1.DeleteOptions{}) },
			"raw": func() error {
				_, err := c.Raw(t.Context(), RawRequest{Path: "/version"}) //nolint:bodyclose // there is none
				return err
			},
		} {
			started := time.Now()
			err := call()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Timeout of the rest.Config, 1m0s,") || time.Since(started) != time.Minute {
				t.Errorf("%s: after %v: %v", what, time.Since(started), err)
			}
		}
		// These end with the caller's context.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		started := time.Now()
		watch, err := pods.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		resp, err := c.Raw(ctx, RawRequest{Path: "/stream"})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it has been read
		_, err = io.ReadAll(resp.Body)
		if err == nil || time.Since(started) != time.Hour || strings.Contains(err.Error(), "rest.Config") {
			t.Errorf("a stream ended after %v: %v", time.Since(started), err)
		}
		if _, err := watch.Next(); err == nil || strings.Contains(err.Error(), "rest.Config") {
			t.Errorf("a watch ended: %v", err)
		}
	})
}

// What of a rest.Config has no effect is said.
func TestLimitsOfTheConfigurationAreNotIgnoredSilently(t *testing.T) {
	for _, test := range []struct {
		config rest.Config
		warned bool
	}{
		{rest.Config{}, false},
		{rest.Config{QPS: -1}, false},
		{rest.Config{QPS: -1, Burst: 10}, false},
		{rest.Config{QPS: 5}, true},
		{rest.Config{Burst: 10}, true},
	} {
		var log bytes.Buffer
		test.config.Host = "http://server"
		if _, err := New(&test.config, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "Options.RateLimiter") != test.warned {
			t.Errorf("%+v: logged %q", test.config.QPS, log.String())
		}
	}
}
