package reflector_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/levelwiretest"
)

// bufferingProxy holds every answer back until it is complete, as some proxies
// between people and their servers do.
func bufferingProxy(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	proxy.ModifyResponse = func(resp *http.Response) error {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.Header.Set("Content-Length", fmt.Sprint(len(body)))
		return err
	}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.Close()
		if idle, ok := transport.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	})
	return server.URL
}

// Behind a proxy that buffers, a stream shows nothing; polls converge.
func TestPollingThroughABufferingProxy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := levelwiretest.Start(t)
	direct, _, _ := clients(t, s, client.Options{})
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	proxied, err := client.New(&rest.Config{Host: bufferingProxy(t, cfg)}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxied.CloseIdleConnections)
	w := &writer{t: t, maps: client.For[*corev1.ConfigMap](direct).Namespace("default"), state: map[string]string{}}
	if err := w.maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w.write(ctx, 5)
	store := newReplica()
	r, err := reflector.New(reflector.Resource(client.For[*corev1.ConfigMap](proxied).Namespace("default"), written),
		reflector.Store[*corev1.ConfigMap](store), reflector.Options{PollTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	runCtx, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- r.Run(runCtx) }()
	store.await(ctx, t, w.state)
	for range 3 {
		w.write(ctx, 20)
		store.await(ctx, t, w.state)
	}
	stats := r.Stats()
	if stats.ListCount() != 1 || stats.Watches != 1 || stats.Polls < 3 || stats.ResumeCount() != 0 || stats.Stale != 0 {
		t.Errorf("%+v", stats)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
