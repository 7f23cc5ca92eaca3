package cached_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cached"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// refusing answers requests for pods with a Status, until its code is 200: then there is one pod.
// Its discovery has pods if served.
type refusing struct {
	code   atomic.Int32
	served bool
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	code, body := int(s.code.Load()), ""
	switch {
	case r.URL.Path == "/api/v1":
		code, body = 200, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`
		if s.served {
			body = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`
		}
	case code == http.StatusForbidden:
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods is forbidden: User \"u\" cannot list resource \"pods\""}`
	case code == http.StatusNotFound:
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource"}`
	case code != http.StatusOK:
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"it is broken"}`
	case r.URL.Query().Get("watch") == "":
		body = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"namespace":"ns","name":"a","resourceVersion":"1"}}]}`
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
	if body == "" {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// firstUse runs a test in a bubble with a reader that caches on first use.
func firstUse(t *testing.T, s *refusing, opts informer.Options, test func(ctx context.Context, reader *cached.Reader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pipe := faultnet.NewPipe()
		server, stopped := &http.Server{Handler: s}, make(chan struct{})
		go func() { defer close(stopped); _ = server.Serve(pipe) }()
		c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{Dial: pipe.Dial, ForceHTTP1: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		opts.Logger = slog.New(slog.DiscardHandler)
		opts.Reflector.PagedList = true
		f := informer.NewFactory(c, opts)
		reader := cached.NewReader(f, cached.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		reader.CacheOnFirstUse(ctx)
		test(ctx, reader)
		cancel()
		f.Shutdown()
		c.CloseIdleConnections()
		_ = server.Close()
		<-stopped
	})
}

// A read of a kind that the server refuses to list returns that answer, and succeeds when the
// server has another one.
func TestFirstUseOfWhatIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		code   int32
		opts   informer.Options
		is     func(error) bool
		saying []string
	}{
		"forbidden": {http.StatusForbidden, informer.Options{}, apierrors.IsForbidden,
			[]string{`cannot list resource "pods"`, `grant the program's identity the verbs list and watch of resource "pods" in API group "" in all namespaces`, "Uncached"}},
		"forbidden in a namespace": {http.StatusForbidden, informer.Options{Namespace: "ns"}, apierrors.IsForbidden,
			[]string{`list and watch of resource "pods" in API group "" in namespace "ns"`}},
		"not served": {http.StatusNotFound, informer.Options{}, meta.IsNoMatchError, []string{"informer pods", "the server does not serve it"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &refusing{}
			s.code.Store(test.code)
			firstUse(t, s, test.opts, func(ctx context.Context, reader *cached.Reader) {
				pods := cached.For[*corev1.Pod](reader).Namespace("ns")
				_, list := pods.List(ctx, metav1.ListOptions{})
				_, get := pods.Get(ctx, "a", metav1.GetOptions{})
				for verb, err := range map[string]error{"list": list, "get": get, "wait": pods.WaitForResourceVersion(ctx, "1")} {
					if !test.is(err) || apierrors.IsNotFound(err) {
						t.Errorf("%s: %v", verb, err)
						continue
					}
					for _, text := range test.saying {
						if !strings.Contains(err.Error(), text) {
							t.Errorf("%s: %v does not say %s", verb, err, text)
						}
					}
				}
				if ctx.Err() != nil {
					t.Error("the reads have waited until their context ended")
				}
				s.code.Store(http.StatusOK)
				time.Sleep(time.Minute)
				if pod, err := pods.Get(ctx, "a", metav1.GetOptions{}); err != nil || pod.Name != "a" {
					t.Errorf("afterwards: %v, %v", pod, err)
				}
			})
		})
	}
}

// Other failures pass by themselves, and a 404 says nothing while discovery has the kind.
func TestFirstUseWaitsForAListThatMayCome(t *testing.T) {
	for name, s := range map[string]*refusing{"an error": {}, "a 404 of what is served": {served: true}} {
		t.Run(name, func(t *testing.T) {
			s.code.Store(http.StatusInternalServerError)
			if s.served {
				s.code.Store(http.StatusNotFound)
			}
			firstUse(t, s, informer.Options{}, func(ctx context.Context, reader *cached.Reader) {
				pods, result := cached.For[*corev1.Pod](reader).Namespace("ns"), make(chan error, 1)
				go func() {
					_, err := pods.Get(ctx, "a", metav1.GetOptions{})
					result <- err
				}()
				time.Sleep(10 * time.Minute)
				select {
				case err := <-result:
					t.Errorf("did not wait: %v", err)
				default:
				}
				s.code.Store(http.StatusOK)
				if err := <-result; err != nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		})
	}
}
