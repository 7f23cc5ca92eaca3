package metrics_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/metrics"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// TestStopRightAfterTheStart: a server that is stopped before it knows who the API server is still
// answers it, so that nobody hears of a service that is not available.
func TestStopRightAfterTheStart(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	api := levelwiretest.Start(t, func(c *server.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	asked := &stopsWhenAsked{stop: stop}
	reader, err := client.New(api.Config(), client.Options{WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		asked.next = next
		return asked
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.CloseIdleConnections()
	m, err := metrics.New(reader, metrics.Options{
		Installer: func() (*client.Client, error) { return client.New(api.Config(), client.Options{}) },
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		t.Error(err)
	}
	if said := log.text(); strings.Contains(said, "WARN") {
		t.Errorf("the API server says\n%s", said)
	}
}

// stopsWhenAsked calls stop with the first request, and fails it.
type stopsWhenAsked struct {
	next http.RoundTripper
	stop func()
	once sync.Once
}

func (s *stopsWhenAsked) RoundTrip(req *http.Request) (*http.Response, error) {
	s.once.Do(s.stop)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return s.next.RoundTrip(req)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
