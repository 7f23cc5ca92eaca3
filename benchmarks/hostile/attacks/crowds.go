package attacks

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// What one user can ask for with rights of its own: much at once, slowly, or without end.

// perConnection is how many streams an attack opens on a connection: fewer than servers allow.
const perConnection = 200

// crowd opens streams on many connections at once, and keeps them.
func crowd(streams int, open func(c *connection, a *attacker, n int), settings ...http2.Setting) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		connections := streams / perConnection
		ended := make(chan error, connections)
		for range connections {
			go func() { ended <- a.member(ctx, open, settings) }()
		}
		var failed error
		for range connections {
			failed = errors.Join(failed, <-ended)
		}
		return failed
	}
}

// member is one connection of a crowd. Its first request makes the user known: until then
// the server allows few streams.
func (a *attacker) member(ctx context.Context, open func(c *connection, a *attacker, n int), settings []http2.Setting) error {
	c, err := a.dial(ctx, a.config, false, settings...)
	if err != nil {
		return err
	}
	defer c.close()
	c.request(true, nil, http.MethodGet, "/version", a.Token)
	known, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	err = c.wait(known)
	cancel()
	if err != nil {
		return err
	}
	for n := range perConnection {
		open(c, a, n)
	}
	return c.wait(ctx)
}

// inFlight is a request that is not over: a body that does not come, or a list that is not read.
func inFlight(c *connection, a *attacker, n int) {
	if n%2 == 0 {
		withoutBody(c, a, n)
	} else {
		unreadList(c, a, n)
	}
}

// initialWatch asks for the state and all events, and has a window for 64 kB of them.
func initialWatch(c *connection, a *attacker, n int) {
	unreadWatch(c, a, n)
	if n == 0 { // the server may send as much on the connection as its streams have windows for
		c.do(c.framer.WriteWindowUpdate(0, 1<<30))
	}
}

// either makes a request over HTTP/1.1 and HTTP/2 in turns.
func (a *attacker) either() *http.Client {
	if a.serial.Add(1)%2 == 0 {
		return a.client
	}
	return a.client1
}

// start sends a request of the attacker's user.
func (a *attacker) start(ctx context.Context, client *http.Client, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.URL+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.Token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return client.Do(r)
}

// slowReader reads a large list, a kilobyte at a time.
func slowReader(ctx context.Context, a *attacker) error {
	answer, err := a.start(ctx, a.either(), http.MethodGet, a.Lists+"?resourceVersion=0", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return status(answer.StatusCode)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := io.CopyN(io.Discard, answer.Body, 1<<10); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// endless is a body that never ends: a kilobyte every 20 ms, of blanks before the object.
type endless struct {
	ctx  context.Context // of the request
	tick *time.Ticker
}

func (e *endless) Read(into []byte) (int, error) {
	select {
	case <-e.tick.C:
	case <-e.ctx.Done():
		return 0, e.ctx.Err()
	}
	return copy(into, blanks), nil
}

var blanks = strings.Repeat(" ", 1<<10)

// endlessBody sends a body without end, and without a length.
func endlessBody(ctx context.Context, a *attacker) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	answer, err := a.start(ctx, a.either(), http.MethodPost, a.Lists, &endless{ctx, tick})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return status(answer.StatusCode)
}

// flood makes one request of any kind over HTTP/1.1 or HTTP/2.
func flood(ctx context.Context, a *attacker, client *http.Client) error {
	n := a.serial.Add(1)
	object := fmt.Sprintf("%s/crowd-%d", a.Lists, n%100)
	kinds := []struct{ method, path, body string }{
		{http.MethodGet, object, ""},
		{http.MethodGet, a.Lists + "?limit=50", ""},
		{http.MethodGet, a.Lists + "?resourceVersion=0&labelSelector=app%3Dnone", ""},
		{http.MethodGet, a.Lists + "?watch=true&timeoutSeconds=1", ""},
		{http.MethodGet, "/api/v1/secrets", ""}, // forbidden
		{http.MethodPost, a.Lists, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"not a name"}}`},
		{http.MethodPost, a.Lists + "?dryRun=All", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flood-%d"}}`, n)},
		{http.MethodPut, object, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`},
		{http.MethodDelete, a.Lists + "/none", ""},
		{http.MethodGet, "/apis", ""},
		{http.MethodGet, "/openapi/v2", ""},
	}
	kind := kinds[n%int64(len(kinds))]
	var body io.Reader
	if kind.body != "" {
		body = strings.NewReader(kind.body)
	}
	answer, err := a.start(ctx, client, kind.method, kind.path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode == http.StatusTooManyRequests {
		return status(answer.StatusCode) // most others are refused for what they ask
	}
	return nil
}

func flood1(ctx context.Context, a *attacker) error { return flood(ctx, a, a.client1) }
func flood2(ctx context.Context, a *attacker) error { return flood(ctx, a, a.client) }

// pipelined writes a thousand requests on a connection of HTTP/1.1 before it reads an answer.
func pipelined(ctx context.Context, a *attacker) error {
	conn, err := (&tls.Dialer{Config: a.config1}).DialContext(ctx, "tcp", a.host)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.(*tls.Conn).NetConn().Close() })
	defer stop()
	const requests = 1000
	request := fmt.Sprintf("GET %s/crowd-1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", a.Lists, a.Token)
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, strings.Repeat(request, requests))
		written <- err
	}()
	err = readAnswers(conn, requests)
	_ = conn.(*tls.Conn).NetConn().Close()
	return errors.Join(err, <-written)
}

func readAnswers(conn net.Conn, n int) error {
	from := bufio.NewReader(conn)
	for range n {
		answer, err := http.ReadResponse(from, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return err
		}
		if answer.StatusCode == http.StatusTooManyRequests {
			return status(answer.StatusCode)
		}
	}
	return nil
}
