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
	"github.com/levelwire/levelwire/client/internal/transfer"
)

// answer is a successful response whose body is still to be read. close must
// be called, once or more; while another goroutine reads, if need be.
type answer struct {
	resp     *http.Response
	body     io.ReadCloser   // the answer's own
	ctx      context.Context // of the request
	x        *transaction
	received atomic.Int64
	transfer *transfer.Transfer // nil: nobody asks
	once     sync.Once
}

// Read implements io.Reader and counts.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if err != nil {
		err = a.ended(a.x.limit.explain(err))
	}
	a.received.Add(int64(n))
	a.transfer.Receive(n)
	a.x.client.counters.received.Add(int64(n))
	return n, err
}

// ended returns why the request was given up in place of the end of an answer of unknown length: a
// server ends the answer of a request that was given up, so it is not known to be whole.
func (a *answer) ended(err error) error {
	if !errors.Is(err, io.EOF) || a.resp.ContentLength >= 0 || a.ctx.Err() == nil {
		return err
	}
	return context.Cause(a.ctx)
}

func (a *answer) encoding() codec.Encoding {
	return codec.EncodingOf(a.resp.Header.Get("Content-Type"))
}

// close ends the request.
func (a *answer) close() {
	a.once.Do(func() {
		_ = a.body.Close() // nothing can be done about it, and nothing is lost
		if a.x.info.Verb == "watch" {
			a.x.client.counters.watches.Add(-1)
		}
		a.x.info.Received += a.received.Load()
		a.x.done()
	})
}

// drain reads what little may be left, a newline for instance, so that the
// connection can be used again.
func (a *answer) drain() { _, _ = io.CopyN(io.Discard, a, drainAtMost) }

const drainAtMost = 4 << 10

// trustedLength bounds the memory that a Content-Length alone is given.
const trustedLength = 1 << 20

// transaction is one request with all its attempts.
type transaction struct {
	client  *Client
	request *request
	info    RequestInfo
	started time.Time

	limit *timeLimit // nil: none

	credentials     any  // the generation before the first attempt
	reauthenticated bool // the request was repeated because of it
	body, accept    bool // whether the last attempt had a protobuf body, and accepted protobuf
}

// do sends a request, again if the server asks for that, until there is a
// successful answer or an error.
func (c *Client) do(ctx context.Context, q *request) (*answer, error) {
	x := &transaction{client: c, request: q, started: time.Now(), credentials: c.transport.Generation(),
		info: RequestInfo{Verb: q.verb, Method: q.method, Host: c.base.Host, Resource: q.gvr}}
	ctx, x.limit = limitTime(ctx, q, c.config.Timeout)
	for {
		resp, err := x.send(ctx)
		if err != nil && x.trustsAnother(err) {
			c.counters.retries.Add(1)
			continue
		}
		if err != nil {
			x.done()
			return nil, fmt.Errorf("%s: %w", q, contextError(ctx, err))
		}
		if resp.StatusCode >= 200 && resp.StatusCode < 300 {
			if err := x.expect(resp); err != nil {
				x.done()
				return nil, err
			}
			if q.verb == "watch" {
				c.counters.watches.Add(1)
			}
			return x.answered(ctx, resp), nil
		}
		again, wait := x.repeat(resp)
		again = again && outlives(ctx, wait)
		if q.anyStatus && !again {
			return x.answered(ctx, resp), nil
		}
		received, statusErr := statusError(resp, q)
		x.info.Received += received
		c.counters.received.Add(received)
		if !again || !pause(ctx, wait) {
			x.done()
			return nil, c.explainUnauthorized(statusErr)
		}
		c.counters.retries.Add(1)
		c.counters.retryWait.Add(int64(wait))
	}
}

// expect returns an error if a successful answer cannot be one of an API server: the
// login page of a proxy must not pass for the success of a delete, nor for a watch
// that has to be listed anew, and a part of a list not for all of it. An empty body may
// have any media type.
func (x *transaction) expect(resp *http.Response) error {
	other := x.request.isOtherSuccess(resp.StatusCode)
	if !other && (x.request.expects(resp.Header.Get("Content-Type")) || x.request.accepted && resp.StatusCode == http.StatusCreated) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if !other && len(body) == 0 && err == nil {
		return nil
	}
	_ = resp.Body.Close() // it is of no use
	x.info.Received += int64(len(body))
	x.client.counters.received.Add(int64(len(body)))
	return fmt.Errorf("%s: %w", x.request, &DecodeError{What: "answer", Err: unexpectedResponse(resp, x.request, body, 0)})
}

// send is one attempt.
func (x *transaction) send(ctx context.Context) (*http.Response, error) {
	c, q := x.client, x.request
	x.info.Attempts++
	x.info.Code = 0
	limiterWait, err := c.throttle(ctx, q)
	if err != nil {
		return nil, err
	}
	x.info.LimiterWait += limiterWait
	if x.body, x.accept = false, false; c.opts.ContentType == Protobuf && q.protobuf {
		bodyRefused, acceptRefused := c.refusals.Refused(q.gvr)
		x.body, x.accept = !bodyRefused, !acceptRefused
	}
	req, sent, err := q.http(ctx, c.base, x.body, x.accept)
	if err != nil {
		return nil, err
	}
	x.body = req.Header.Get("Content-Type") == string(Protobuf)
	x.info.Sent += sent
	c.counters.requests.Add(1)
	c.counters.sent.Add(sent)
	started := time.Now()
	resp, lookedUp, err := c.exchange(req)
	if err == nil {
		x.info.Code = resp.StatusCode
		c.warnings.read(ctx, resp.Header, c.contain)
	}
	if c.opts.Observer != nil {
		attempt := AttemptInfo{Verb: q.verb, Method: q.method, Host: c.base.Host, Resource: q.gvr, Number: x.info.Attempts,
			Code: x.info.Code, Err: err, Duration: time.Since(started), Lookup: lookedUp, LimiterWait: limiterWait, Sent: sent}
		c.contain("Observer.AttemptDone", func() { c.opts.Observer.AttemptDone(attempt) })
	}
	return resp, err
}

// exchange sends a request and waits for the header of the answer. lookedUp is only known if somebody observes it.
func (c *Client) exchange(req *http.Request) (resp *http.Response, lookedUp time.Duration, err error) {
	var looked lookup
	if c.opts.Observer != nil {
		req = req.WithContext(looked.trace(req.Context()))
	}
	err = errTransportPanicked
	c.contain("the transport", func() { resp, err = c.http.Do(req) }) //nolint:bodyclose // who reads the answer closes it
	return resp, looked.duration(), err
}

// errTransportPanicked is the end of an attempt in which rest.Config.Proxy, or a round tripper of the program, has panicked.
var errTransportPanicked = errors.New("the transport panicked")

// contain calls a function of the program. A panic is counted.
func (c *Client) contain(what string, call func()) {
	c.counters.panics.Call(c.opts.Logger, what, call)
}

// answered returns the answer whose body is still to be read.
func (x *transaction) answered(ctx context.Context, resp *http.Response) *answer {
	if x.request.verb == "raw" {
		x.limit.lift() // its body may be a stream
	}
	return &answer{resp: resp, body: resp.Body, ctx: ctx, x: x, transfer: transfer.Of(ctx)}
}

// done reports the finished request.
func (x *transaction) done() {
	x.limit.end()
	if x.client.opts.Observer == nil {
		return
	}
	x.info.Duration = time.Since(x.started)
	x.client.contain("Observer.RequestDone", func() { x.client.opts.Observer.RequestDone(x.info) })
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
		return nil, codec.EncodingUnknown, fmt.Errorf("%s: %w", q, contextError(ctx, err))
	}
	if limit >= 0 && int64(buf.Len()) > limit {
		return nil, codec.EncodingUnknown, fmt.Errorf("%s: %w", q, ErrFrameTooLarge)
	}
	return buf.Bytes(), ans.encoding(), nil
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
