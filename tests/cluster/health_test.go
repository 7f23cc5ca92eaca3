//go:build linux

package cluster

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/tests/workload"
)

const (
	healthInterval = 300 * time.Millisecond
	healthTimeout  = 2 * time.Second // after which the balancer takes a server for unready
	answerTimeout  = 7 * time.Second // the server's own is 5
)

// health asks a server's /readyz all the time, as a balancer does, and keeps new
// connections from a server that is not ready.
type health struct {
	// down is what the balancer does then.
	down func()

	mu    sync.Mutex
	ready bool
	text  string // the last answer, or the error of asking
}

// watchHealth asks until the end of the test. If closes, the balancer also closes the
// connections to a server that becomes unready, as some can.
func watchHealth(t *testing.T, s *apiserver, balancer *faultnet.Balancer, closes bool) *health {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	// HTTP/1.1, so that a connection to a silent server ends with the request that was given
	// up: client-go's transport would go on to ping it after the test.
	transport := &http.Transport{TLSClientConfig: tlsConfig}
	h := &health{ready: true, down: func() {
		balancer.Drain(s.address, true)
		if closes {
			balancer.Kill(s.address)
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := http.Client{Transport: transport}
		defer c.CloseIdleConnections()
		for ctx.Err() == nil {
			late := time.AfterFunc(healthTimeout, h.down)
			ready, text := ask(ctx, &c, s.config.Host+"/readyz")
			late.Stop()
			h.set(ready, text)
			if ready {
				balancer.Drain(s.address, false)
			} else {
				h.down()
			}
			workload.Wait(ctx, healthInterval)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return h
}

func ask(ctx context.Context, c *http.Client, url string) (ready bool, text string) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout) //passes: the server may be stopped, which makes it unready
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err.Error()
	}
	answer, err := c.Do(request)
	if err != nil {
		c.CloseIdleConnections()
		return false, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, err.Error()
	}
	return answer.StatusCode == http.StatusOK, string(body)
}

func (h *health) set(ready bool, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready, h.text = ready, text
}

func (h *health) get() (ready bool, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready, h.text
}
