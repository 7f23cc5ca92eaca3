package events

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRecorder returns a recorder, not running, whose server accepts every event.
func newRecorder(t *testing.T) *Recorder {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return New(c, "tester", "", slog.New(slog.DiscardHandler))
}

func TestNamesAreUnique(t *testing.T) {
	r := &Recorder{}
	o := occurrence{identity: identity{name: "p"}, at: time.Unix(1, 0)}
	if a, b := r.nameFor(o), r.nameFor(o); a == b {
		t.Errorf("two events at the same time are both %s", a)
	}
}

// A recorder that cannot write blocks no caller, and its memory is bounded.
func TestReportingNeverBlocks(t *testing.T) {
	r := newRecorder(t)
	pod := Regarding{GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Namespace: "default", Name: "p"}
	for i := range queueLength + 5 {
		r.Normal(pod, "Much", "%d", i)
	}
	if r.Dropped() != 5 || len(r.queue) != queueLength {
		t.Errorf("%d dropped, %d queued", r.Dropped(), len(r.queue))
	}
}

func TestRememberedEventsAreBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r := newRecorder(t)
	for i := range rememberedMost {
		r.seen[identity{name: fmt.Sprint(i)}] = written{}
	}
	if err := r.write(ctx, occurrence{identity: identity{namespace: "default", name: "p", kind: corev1.EventTypeNormal, reason: "R"}, at: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if len(r.seen) != 1 {
		t.Errorf("tracks %d events", len(r.seen))
	}
}
