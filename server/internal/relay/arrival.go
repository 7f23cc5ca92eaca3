package relay

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// That a probe is answered says something of a stream only if both are on one connection: a
// connection may hang while the next one is quick, and the upstream may have asked for the next one
// (GOAWAY), or credentials have been rotated, while streams go on where they are. And what
// has arrived before the answer may still wait to be read and applied.

// arrivals are what a watch of the upstream receives.
type arrivals struct {
	now    func() time.Time
	proved func(answered) // is called when all has been applied that arrived before the answer to a probe

	mu   sync.Mutex // guards the fields below
	conn net.Conn
	// waiting: a read waits, so all that was read before has been applied.
	waiting bool
	// dry: the last read returned less than it might have, at a time: no more had arrived then.
	dry   bool
	since time.Time
	probe answered // that counts when all that arrived before has been applied; zero: none
}

// answered is a probe that was sent at a time, and whose answer has arrived at another.
type answered struct {
	sent, at time.Time
	// current is up to when the upstream had everything: until it was sent, unless the upstream
	// is a relay.
	current time.Time
}

type arrivalsKey struct{}

// follow returns a context for a watch, and what the watch will receive.
func (r *Relay) follow(ctx context.Context) (context.Context, *arrivals) {
	a := &arrivals{now: r.contact.now}
	ctx = onConnection(ctx, func(conn net.Conn) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.conn = conn
	})
	return context.WithValue(ctx, arrivalsKey{}, a), a
}

// onConnection has a function called with the connection on which a request is sent.
func onConnection(ctx context.Context, call func(net.Conn)) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { call(info.Conn) }})
}

// probed notes that a probe was answered on a connection. It returns false if that says nothing.
func (a *arrivals) probed(conn net.Conn, probe answered) bool {
	a.mu.Lock()
	if conn == nil || a.conn != conn {
		a.mu.Unlock()
		return false
	}
	applied := a.waiting && a.dry
	if !applied && a.probe == (answered{}) {
		a.probe = probe
	}
	a.mu.Unlock()
	if applied {
		a.proved(probe)
	}
	return true
}

// begin notes that a read begins.
func (a *arrivals) begin() {
	a.mu.Lock()
	a.waiting = true
	var probe answered
	if a.dry && !a.since.Before(a.probe.at) {
		probe, a.probe = a.probe, answered{}
	}
	a.mu.Unlock()
	if probe != (answered{}) {
		a.proved(probe)
	}
}

// end notes that a read has returned everything that has arrived, or perhaps not.
func (a *arrivals) end(everything bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting, a.dry = false, everything
	if everything {
		a.since = a.now()
	}
}

// followsArrivals is a transport that notes how the answers of watches are read.
type followsArrivals struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f followsArrivals) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(req)
	if a, ok := req.Context().Value(arrivalsKey{}).(*arrivals); ok && err == nil {
		response.Body = &arrivingBody{response.Body, a}
	}
	return response, err
}

// CloseIdleConnections closes those of the round tripper below, which http.Client looks for.
func (f followsArrivals) CloseIdleConnections() {
	if c, ok := f.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// arrivingBody is the body of an answer to a watch. Its reader asks for more when it has
// applied all that it has.
type arrivingBody struct {
	io.ReadCloser
	arrivals *arrivals
}

// Read implements io.Reader. With HTTP/2, which alone has a connection for both, it returns all
// that has arrived and fits.
func (b *arrivingBody) Read(p []byte) (int, error) {
	b.arrivals.begin()
	n, err := b.ReadCloser.Read(p)
	b.arrivals.end(n < len(p))
	return n, err
}
