package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// TestShutdownDelay: during the delay /readyz fails and the server's address is not
// in default/kubernetes, and requests are served as before. The server does not
// wait for the rest of the delay when one of its parts fails.
func TestShutdownDelay(t *testing.T) {
	ctx := deadline(t)
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Config{
		DataDir: t.TempDir(), ShutdownDelay: time.Hour,
		OpenStore: func(context.Context) (storage.Store, error) { return store, nil },
	})
	c := s.client(t)
	pods := openWatch(ctx, t, client.For[*corev1.ConfigMap](c))
	s.cancel()
	report := testwait.Stable(t, "the server is not ready", func() (string, bool) {
		code, report := readiness(ctx, t, s)
		return report, code != http.StatusOK
	})
	if !strings.Contains(report, "[-]leaving") {
		t.Errorf("/readyz says %s", report)
	}
	testwait.Stable(t, "the server is not in default/kubernetes", func() (any, bool) {
		slice, err := client.For[*discoveryv1.EndpointSlice](c).Namespace("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		return []any{slice, err}, err == nil && len(slice.Endpoints) == 0
	})
	made := create(ctx, t, c, "late")
	if event, err := pods.Next(); err != nil || event.Object.GetUID() != made.UID {
		t.Errorf("a watch: %v, %v", event, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		s.ended <- nil // for stop
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("the server ended with %v", err)
		}
	case <-ctx.Done():
		t.Error("the server waits for nothing")
	}
}

// readiness returns the answer of /readyz to an anonymous request.
func readiness(ctx context.Context, t *testing.T, s *running) (code int, report string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // Nothing is trusted here.
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/readyz?verbose", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
