package relay

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// relayOf returns a relay, which does not run, of a server.
func relayOf(t *testing.T, upstream http.HandlerFunc, change ...func(*rest.Config)) *Relay {
	t.Helper()
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	for _, f := range change {
		f(config)
	}
	r, err := New(Options{Config: config, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestProbeAnsweredFromMemory: an upstream that is a relay, and has lost its own upstream,
// does not make a relay believe that what it has is current.
func TestProbeAnsweredFromMemory(t *testing.T) {
	age := ""
	r := relayOf(t, func(w http.ResponseWriter, _ *http.Request) {
		if age != "" {
			w.Header().Set("Age", age)
		}
	})
	now := time.Unix(1_000_000, 0)
	r.contact.now = func() time.Time { return now }
	probe := func(declared string, last time.Time) {
		t.Helper()
		now, age = now.Add(time.Minute), declared
		r.probeOnce(context.Background())
		if got := time.Unix(0, r.contact.last.Load()); !got.Equal(last) {
			t.Errorf("Age %q: the upstream has answered at %s, want %s", declared, got, last)
		}
	}
	begin := now
	probe("", begin.Add(time.Minute))
	probe("0", begin.Add(2*time.Minute))
	probe("70", begin.Add(3*time.Minute-70*time.Second))
	if err := r.CheckUpstream(context.Background()); err == nil {
		t.Error("the relay is ready")
	}
	probe("0", begin.Add(4*time.Minute))
}
