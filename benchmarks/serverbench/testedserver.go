package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
)

// The sides of the comparison.
const (
	ours     = "ours"
	upstream = "upstream"
)

// testedServer is a server under test, with all of its processes: with upstream,
// those of the API server and of its etcd.
type testedServer struct {
	side      string
	access    access
	processes []*process.Child // the API server first
	objects   int              // pods that it held when it started
	port      int              // of the API server; 0: any
	flags     []string         // of our server, besides those that all have
	etcd      string           // the address of upstream's
	// ready is how long it took from the start of the API server's process until
	// it answered a list from its cache, and before the processor time that its
	// other processes had used until that start.
	ready, before time.Duration
}

// access is how clients reach a server.
type access struct {
	URL           string
	CA, Cert, Key []byte // PEM; a client certificate if the server wants one
}

// tls returns what a client of HTTP/2 needs.
func (a access) tls() (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, errors.New("the server's authority is no certificate")
	}
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}
	if len(a.Cert) > 0 {
		pair, err := tls.X509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// client returns a client of net/http with connections of its own.
func (a access) client() (*http.Client, error) {
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true}}, nil
}

// cpu is the processor time that the server has used, all its processes
// together.
func (t *testedServer) cpu() (sum time.Duration, err error) {
	for _, p := range t.processes {
		d, err := p.CPU()
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// memory is what it has resident, all its processes together.
func (t *testedServer) memory() (sum measure.Memory, err error) {
	for _, p := range t.processes {
		m, err := p.Memory()
		if err != nil {
			return sum, err
		}
		sum = sum.Add(m)
	}
	return sum, nil
}

// resetPeak makes the peak of memory what there is now.
func (t *testedServer) resetPeak() error {
	for _, p := range t.processes {
		if err := p.ResetPeak(); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the server has nothing more to do, such as collecting its
// garbage: the work that it does next is then for the next request. It waits ten
// seconds at most.
func (t *testedServer) settle(ctx context.Context) error {
	const interval, idle, calm = 100 * time.Millisecond, 3 * time.Millisecond, 4
	before, err := t.cpu()
	for quiet, rounds := 0, 0; err == nil && quiet < calm && rounds < 100; rounds++ {
		if err := pause(ctx, interval); err != nil {
			return err
		}
		var now time.Duration
		now, err = t.cpu()
		if quiet++; now-before > idle {
			quiet = 0
		}
		before = now
	}
	return err
}

// stop ends the server.
func (t *testedServer) stop() error {
	var errs []error
	for _, p := range t.processes {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// kill ends it at once.
func (t *testedServer) kill() {
	for _, p := range t.processes {
		p.Kill()
	}
	t.processes = nil
}

// killServer ends the API server at once, and with our side its store. It can be
// launched again.
func (t *testedServer) killServer() {
	t.processes[0].Kill()
	t.processes = t.processes[1:]
}

// awaitCache asks for a list from the cache until it is answered. The list has
// no limit, as upstream reads lists with one from etcd while its cache is not
// ready.
func (t *testedServer) awaitCache(ctx context.Context) error {
	client, err := t.access.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.access.URL+"/api/v1/namespaces/none/pods?resourceVersion=0", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("%s: %w", t.side, err)
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close() // it was read to its end, or to more than is wanted
		switch {
		case err != nil:
			return err
		case response.StatusCode == http.StatusOK:
			return nil
		case response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable:
			return fmt.Errorf("%s answers %s to a list: %s", t.side, response.Status, body)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
