package informer_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// onePod answers each list with a pod, and each watch with nothing.
type onePod struct{ refuse atomic.Bool }

// unendingBody is that of a watch, until its request ends.
type unendingBody struct{ ctx context.Context }

func (b unendingBody) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }
func (unendingBody) Close() error               { return nil }

func (s *onePod) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := "PodList"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		kind = "PartialObjectMetadataList"
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(
		`{"kind":"` + kind + `","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"namespace":"ns","name":"a","resourceVersion":"4"}}]}`))}
	switch {
	case s.refuse.Load():
		resp.StatusCode = http.StatusInternalServerError
	case r.URL.Query().Get("watch") == "true":
		resp.Body = unendingBody{r.Context()}
	}
	return resp, nil
}

// Functions of the program that panic beside transforms, index functions and handlers: a
// request is not sent, or an error not reported, and the informer goes on.
func TestFunctionsOfTheProgramThatPanic(t *testing.T) {
	for name, test := range map[string]struct {
		panics func(calls int64) bool // of the modifier
		opts   informer.Options
		logged string
	}{
		"the modifier, at first":              {func(n int64) bool { return n > 1 && n < 6 }, informer.Options{}, "modifier"},
		"the modifier, of pages":              {func(n int64) bool { return n > 1 && n < 6 }, informer.Options{Reflector: reflector.Options{PagedList: true}}, "modifier"},
		"the modifier, of watches":            {func(n int64) bool { return n > 2 && n < 6 }, informer.Options{Reflector: reflector.Options{PagedList: true}}, "modifier"},
		"the modifier, of consistency checks": {func(n int64) bool { return n > 3 }, informer.Options{ConsistencyCheckInterval: time.Minute, Reflector: reflector.Options{PagedList: true}}, "modifier"},
		"OnError":                             {func(int64) bool { return false }, informer.Options{Reflector: reflector.Options{PagedList: true, OnError: func(string, error) { panic("report") }}}, "report"},
		"Rand":                                {func(int64) bool { return false }, informer.Options{Reflector: reflector.Options{PagedList: true, Rand: func() float64 { panic("random") }}}, "random"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &onePod{}
				c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{WrapTransport: func(http.RoundTripper) http.RoundTripper { return server }})
				if err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				test.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
				factory := informer.NewFactory(c, test.opts)
				var calls atomic.Int64
				pods := informer.For[*corev1.Pod](factory, informer.ListOptions{Modifier: informer.ListModifier{Name: "m", Modify: func(*metav1.ListOptions) {
					if test.panics(calls.Add(1)) {
						panic("modifier")
					}
				}}})
				server.refuse.Store(test.logged == "report")
				ctx, cancel := context.WithCancel(t.Context())
				factory.Start(ctx)
				time.Sleep(10 * time.Minute)
				server.refuse.Store(false)
				time.Sleep(10 * time.Minute)
				if _, ok := pods.Lister().Get("ns", "a"); !ok || !pods.HasSynced() || pods.Err() != nil {
					t.Errorf("has the pod: %v, synced %v, %v", ok, pods.HasSynced(), pods.Err())
				}
				cancel()
				factory.Shutdown()
				if !strings.Contains(log.String(), "panicked: "+test.logged) {
					t.Errorf("logged %s", log.String())
				}
			})
		})
	}
}
