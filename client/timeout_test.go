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

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
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

// endsWhenGivenUp is the body of an answer that its server ends as if it were whole, when it
// learns that the request was given up.
type endsWhenGivenUp struct {
	io.Reader
	given <-chan struct{}
}

func (b endsWhenGivenUp) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		<-b.given
	}
	return n, err
}

func (b endsWhenGivenUp) Close() error { return nil }

// An answer that ends because the time is over says that, and is not taken for whole.
func TestAnswerThatEndsWithTheTime(t *testing.T) {
	for _, body := range []string{"{", `{"metadata":{"name":"a"}}`} {
		synctest.Test(t, func(t *testing.T) {
			c, err := New(&rest.Config{Host: "http://server", Timeout: time.Minute}, Options{WrapTransport: func(http.RoundTripper) http.RoundTripper {
				return roundTripFunc(func(r *http.Request) (*http.Response, error) {
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1,
						Body: endsWhenGivenUp{strings.NewReader(body), r.Context().Done()}, Request: r,
					}, nil
				})
			}})
			if err != nil {
				t.Fatal(err)
			}
			pods := For[*corev1.Pod](c).Namespace("ns")
			if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("get of %s: %v", body, err)
			}
			if _, err := pods.List(t.Context(), metav1.ListOptions{}); body == "{" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("list: %v", err)
			}
		})
	}
}

// So it is for the context of the caller, and its cause is said.
func TestAnswerThatEndsWithTheContext(t *testing.T) {
	errStopped := errors.New("the caller has stopped")
	for body, whole := range map[string]bool{"{": false, `{"metadata":{"name":"a"}}`: false, `{"metadata":{"name":"b"}}`: true} {
		synctest.Test(t, func(t *testing.T) {
			length := int64(-1)
			if whole { // the answer says how long it is
				length = int64(len(body))
			}
			c, err := New(&rest.Config{Host: "http://server"}, Options{WrapTransport: func(http.RoundTripper) http.RoundTripper {
				return roundTripFunc(func(r *http.Request) (*http.Response, error) {
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: length,
						Body: endsWhenGivenUp{strings.NewReader(body), r.Context().Done()}, Request: r,
					}, nil
				})
			}})
			if err != nil {
				t.Fatal(err)
			}
			for name, ask := range map[string]func(ctx context.Context) error{
				"get": func(ctx context.Context) error {
					_, err := For[*corev1.Pod](c).Namespace("ns").Get(ctx, "a", metav1.GetOptions{})
					return err
				},
				"list": func(ctx context.Context) error {
					_, err := For[*corev1.Pod](c).Namespace("ns").List(ctx, metav1.ListOptions{})
					return err
				},
				"watch": func(ctx context.Context) error {
					w, err := For[*corev1.Pod](c).Namespace("ns").Watch(ctx, metav1.ListOptions{})
					if err == nil {
						_, err = w.Next()
					}
					return err
				},
				"raw": func(ctx context.Context) error {
					resp, err := c.Raw(ctx, RawRequest{Path: "/version"})
					if err != nil {
						return err
					}
					_, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					return err
				},
			} {
				if body != "{" && (name == "list" || name == "watch") {
					continue // what they read ends before the answer does
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errStopped) })
				if err := ask(ctx); errors.Is(err, errStopped) == whole || whole && err != nil {
					t.Errorf("%s of %s: %v", name, body, err)
				}
			}
		})
	}
}

// The limits of a rest.Config are obeyed, those of Options go before them, and what has no
// effect is said.
func TestLimitsOfTheConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		config rest.Config
		opts   Options
		takes  time.Duration // of 21 requests, one after the other
		warned bool
	}{
		"none":                    {},
		"QPS":                     {config: rest.Config{QPS: 5}, takes: 11 * 200 * time.Millisecond}, // with the burst of 10
		"QPS and Burst":           {config: rest.Config{QPS: 5, Burst: 1}, takes: 20 * 200 * time.Millisecond},
		"a fraction of QPS":       {config: rest.Config{QPS: 0.5, Burst: 20}, takes: 2 * time.Second},
		"a negative QPS":          {config: rest.Config{QPS: -1}},
		"a negative QPS, a Burst": {config: rest.Config{QPS: -1, Burst: 10}},
		"Burst alone":             {config: rest.Config{Burst: 10}, warned: true},
		"RateLimiter":             {config: rest.Config{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(1, 1), QPS: 5}, takes: 20 * time.Second},
		"Options":                 {config: rest.Config{RateLimiter: flowcontrol.NewFakeNeverRateLimiter(), QPS: 5}, opts: Options{RateLimiter: rate.NewLimiter(10, 1)}, takes: 2 * time.Second},
		"Options, a Burst":        {config: rest.Config{Burst: 10}, opts: Options{RateLimiter: rate.NewLimiter(rate.Inf, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			test.config.Host = "http://server"
			test.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			test.opts.WrapTransport = func(http.RoundTripper) http.RoundTripper {
				return roundTripFunc(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
						Body: io.NopCloser(strings.NewReader(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`))}, nil
				})
			}
			synctest.Test(t, func(t *testing.T) {
				c, err := New(&test.config, test.opts)
				if err != nil {
					t.Fatal(err)
				}
				started := time.Now()
				for range 21 {
					if _, err := For[*corev1.Pod](c).Namespace("n").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(started).Round(time.Millisecond); took != test.takes {
					t.Errorf("21 requests took %v, want %v", took, test.takes)
				}
			})
			if strings.Contains(log.String(), "not limited") != test.warned {
				t.Errorf("logged %q", log.String())
			}
		})
	}
}
