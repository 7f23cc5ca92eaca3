package health_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/client/health"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestServerServesUntilItsContextEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := &health.Server{Listener: listener, Handler: health.NewHandler(health.Options{})}
	go func() { ended <- s.Run(ctx) }()
	resp, err := http.Get("http://" + listener.Addr().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "ok") {
		t.Errorf("%d %q, %v", resp.StatusCode, body, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + listener.Addr().String() + "/readyz"); err == nil {
		t.Error("it serves after its end")
	}
}

func TestServerThatCannotListen(t *testing.T) {
	if err := (&health.Server{Address: "nowhere:none", Handler: health.NewHandler(health.Options{})}).Run(t.Context()); err == nil {
		t.Error("no error for a wrong address")
	}
	if err := (&health.Server{Address: "127.0.0.1:0"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Handler") {
		t.Errorf("without a handler: %v", err)
	}
}
