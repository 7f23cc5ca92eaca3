package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/client/internal/codec"
)

// answer is a successful response whose body is still to be read. close must
// be called, once or more; while another goroutine reads, if need be.
type answer struct {
	resp     *http.Response
	client   *Client
	info     RequestInfo
	started  time.Time
	received atomic.Int64
	once     sync.Once
}

// Read implements io.Reader and counts.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.resp.Body.Read(p)
	a.received.Add(int64(n))
	a.client.counters.received.Add(int64(n))
	return n, err
}

func (a *answer) encoding() codec.Encoding {
	return codec.EncodingOf(a.resp.Header.Get("Content-Type"))
}

// close ends the request.
func (a *answer) close() {
	a.once.Do(func() {
		_ = a.resp.Body.Close() // nothing can be done about it, and nothing is lost
		if a.info.Verb == "watch" {
			a.client.counters.watches.Add(-1)
		}
		a.info.Received += a.received.Load()
		a.client.done(a.info, a.started)
	})
}

// drain reads what little may be left, a newline for instance, so that the
// connection can be used again.
func (a *answer) drain() { _, _ = io.CopyN(io.Discard, a, drainAtMost) }

const drainAtMost = 4 << 10

// trustedLength bounds the memory that a Content-Length alone is given.
const trustedLength = 1 << 20

// done reports a finished request.
func (c *Client) done(info RequestInfo, started time.Time) {
	if c.opts.Observer == nil {
		return
	}
	info.Duration = time.Since(started)
	c.opts.Observer.RequestDone(info)
}

// do sends a request, again if the server asks for that, until there is a
// successful answer or an error.
func (c *Client) do(ctx context.Context, q *request) (*answer, error) {
	info := RequestInfo{Verb: q.verb, Resource: q.gvr}
	started := time.Now()
	for {
		info.Attempts++
		resp, sent, err := c.send(ctx, q)
		info.Sent += sent
		if err != nil {
			c.done(info, started)
			return nil, fmt.Errorf("%s %s: %w", q.verb, q.gvr.Resource, contextError(ctx, err))
		}
		info.Code = resp.StatusCode
		if resp.StatusCode >= 200 && resp.StatusCode < 300 {
			if q.verb == "watch" {
				c.counters.watches.Add(1)
			}
			return &answer{resp: resp, client: c, info: info, started: started}, nil
		}
		received, statusErr := statusError(resp, q)
		info.Received += received
		c.counters.received.Add(received)
		again, wait := c.repeat(q, resp, info.Attempts)
		if !again || !pause(ctx, wait) {
			c.done(info, started)
			return nil, statusErr
		}
		c.counters.retries.Add(1)
	}
}

// send sends a request once.
func (c *Client) send(ctx context.Context, q *request) (*http.Response, int64, error) {
	req, sent, err := q.http(ctx, c.base, c.opts.ContentType == Protobuf && !c.jsonOnly.Load())
	if err != nil {
		return nil, 0, err
	}
	c.counters.requests.Add(1)
	c.counters.sent.Add(sent)
	resp, err := c.http.Do(req)
	return resp, sent, err
}

// readAll sends a request and reads the answer, which is one object.
func (c *Client) readAll(ctx context.Context, q *request) ([]byte, codec.Encoding, error) {
	ans, err := c.do(ctx, q)
	if err != nil {
		return nil, codec.EncodingUnknown, err
	}
	defer ans.close()
	limit := c.opts.MaxFrameBytes
	var buf bytes.Buffer
	if n := ans.resp.ContentLength; n > 0 && (limit < 0 || n <= limit) {
		buf.Grow(int(min(n, trustedLength)) + bytes.MinRead)
	}
	var r io.Reader = ans
	if limit >= 0 {
		r = io.LimitReader(ans, limit+1)
	}
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, codec.EncodingUnknown, fmt.Errorf("%s %s: %w", q.verb, q.gvr.Resource, contextError(ctx, err))
	}
	if limit >= 0 && int64(buf.Len()) > limit {
		return nil, codec.EncodingUnknown, fmt.Errorf("%s %s: %w", q.verb, q.gvr.Resource, ErrFrameTooLarge)
	}
	return buf.Bytes(), ans.encoding(), nil
}

// repeat decides whether a refused request is sent again, and after how long.
// A 429 says that nothing was done, whatever the verb; one that does not say
// when to come back, as of an eviction over its budget, is the answer. A 503 may come from
// something between us and a server that did act, so only reads are repeated.
// A server that refuses protobuf is spoken to in JSON from then on.
func (c *Client) repeat(q *request, resp *http.Response, attempts int) (bool, time.Duration) {
	switch resp.StatusCode {
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		usedProtobuf := c.opts.ContentType == Protobuf && q.protobuf
		return usedProtobuf && c.jsonOnly.CompareAndSwap(false, true), 0
	case http.StatusTooManyRequests:
		if resp.Header.Get("Retry-After") == "" {
			return false, 0
		}
	case http.StatusServiceUnavailable:
		if q.method != http.MethodGet || resp.Header.Get("Retry-After") == "" {
			return false, 0
		}
	default:
		return false, 0
	}
	if q.verb == "watch" || c.opts.Retry.Max < 0 || attempts > c.opts.Retry.Max {
		return false, 0
	}
	wait := time.Duration(retryAfter(resp.Header, time.Now())) * time.Second
	return true, min(max(wait, time.Second), c.opts.Retry.MaxWait)
}

// pause waits, unless the context would not outlive it.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// contextError adds why the context ended, where it did: the transport's own
// error does not say.
func contextError(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

func bodyReader(data []byte) io.Reader {
	if data == nil {
		return nil // not a nil *bytes.Reader: that would be a body
	}
	return bytes.NewReader(data)
}
