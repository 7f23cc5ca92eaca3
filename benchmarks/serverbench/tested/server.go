package tested

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
)

// The sides of the comparison.
const (
	Ours     = "ours"
	Upstream = "upstream"
)

// Server is a server under test, with all of its processes: with upstream,
// those of the API server and of its etcd.
type Server struct {
	Side      string
	Access    Access
	Processes []*process.Child // the API server first
	Objects   int              // pods that it held when it started
	Port      int              // of the API server; 0: any
	Command   string           // of our program; empty: serve
	Flags     []string         // of our server, besides those that all have
	Etcd      string           // the address of upstream's
	// Ready is how long it took from the start of the API server's process until
	// it answered a list from its cache, and CPUBefore the processor time that its
	// other processes had used until that start.
	Ready, CPUBefore time.Duration
}

// CPU is the processor time that the server has used, all its processes
// together.
func (t *Server) CPU() (sum time.Duration, err error) {
	for _, p := range t.Processes {
		d, err := p.CPU()
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// Memory is what the server has resident, all its processes together.
func (t *Server) Memory() (sum measure.Memory, err error) {
	for _, p := range t.Processes {
		m, err := p.Memory()
		if err != nil {
			return sum, err
		}
		sum = sum.Add(m)
	}
	return sum, nil
}

// ResetPeak makes the peak of memory what there is now.
func (t *Server) ResetPeak() error {
	for _, p := range t.Processes {
		if err := p.ResetPeak(); err != nil {
			return err
		}
	}
	return nil
}

// Settle waits until the server has nothing more to do, such as collecting its
// garbage: the work that it does next is then for the next request. It waits ten
// seconds at most.
func (t *Server) Settle(ctx context.Context) error { return Settle(ctx, t.CPU) }

// Settle waits, for ten seconds at most, until what cpu is the processor time of has nothing more to do.
func Settle(ctx context.Context, cpu func() (time.Duration, error)) error {
	const interval, idle, calm = 100 * time.Millisecond, 3 * time.Millisecond, 4
	before, err := cpu()
	for quiet, rounds := 0, 0; err == nil && quiet < calm && rounds < 100; rounds++ {
		if err := Pause(ctx, interval); err != nil {
			return err
		}
		var now time.Duration
		now, err = cpu()
		if quiet++; now-before > idle {
			quiet = 0
		}
		before = now
	}
	return err
}

// StoreCPU is the processor time of what is not the API server.
func (t *Server) StoreCPU() (sum time.Duration, err error) {
	for _, p := range t.Processes[1:] {
		d, err := p.CPU()
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// Stop ends the server.
func (t *Server) Stop() error {
	var errs []error
	for _, p := range t.Processes {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// Kill ends the server at once.
func (t *Server) Kill() {
	for _, p := range t.Processes {
		p.Kill()
	}
	t.Processes = nil
}

// KillServer ends the API server at once, and with our side its store. It can be
// launched again.
func (t *Server) KillServer() {
	t.Processes[0].Kill()
	t.Processes = t.Processes[1:]
}

// awaitCache asks for a list from the cache until it is answered. The list has
// no limit, as upstream reads lists with one from etcd while its cache is not
// ready.
func (t *Server) awaitCache(ctx context.Context) error {
	client, err := t.Access.HTTPClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Access.URL+"/api/v1/namespaces/none/pods?resourceVersion=0", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Side, err)
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close() // it was read to its end, or to more than is wanted
		switch {
		case err != nil:
			return err
		case response.StatusCode == http.StatusOK:
			return nil
		case response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable:
			return fmt.Errorf("%s answers %s to a list: %s", t.Side, response.Status, body)
		}
		if err := Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// Pause waits for a time, or until its context ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// With calls do with a connection of its own to the server.
func (t *Server) With(ctx context.Context, do func(*load.Conn) error) error {
	config, address, err := t.Access.Reach()
	if err != nil {
		return err
	}
	c, err := load.Dial(ctx, address, config, load.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// Change sends requests that write to pods, and returns when all are answered.
func (t *Server) Change(ctx context.Context, requests []load.Request) error {
	return t.With(ctx, func(c *load.Conn) error {
		return load.Post(ctx, c, 32, func(yield func(load.Request) bool) {
			for _, r := range requests {
				if !yield(r) {
					return
				}
			}
		})
	})
}

// Version is the resource version of the server's pods now.
func (t *Server) Version(ctx context.Context) (string, error) {
	config, address, err := t.Access.Reach()
	if err != nil {
		return "", err
	}
	c, err := load.Dial(ctx, address, config, load.Options{})
	if err != nil {
		return "", err
	}
	defer c.Close()
	answer := c.Do(ctx, load.Request{Path: "/api/v1/pods?limit=1", Header: []hpack.HeaderField{{Name: "accept", Value: "application/json"}}})
	if err := answer.Check(0); err != nil {
		return "", err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return "", err
	}
	return list.Metadata.ResourceVersion, nil
}
