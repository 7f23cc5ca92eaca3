package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request is one HTTP request. Headers are "Name: value".
type request struct {
	method  string // default GET
	path    string // with the query
	headers []string
	body    string
	http1   bool
}

// answer is a complete response.
type answer struct {
	code   int
	proto  int // 1 or 2
	header http.Header
	body   []byte
	took   time.Duration
}

func (a *answer) String() string { return fmt.Sprintf("%d %s", a.code, excerpt(a.body)) }

// comesTooEarly reports whether the server asks for the request to be sent again: it, or what is behind
// it, is not ready, or has not seen the version yet that the answer needs.
func (a *answer) comesTooEarly() bool {
	return a.code == http.StatusServiceUnavailable || a.code == http.StatusGatewayTimeout
}

func (a *answer) decode(into any) error {
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("the answer cannot be decoded: %w: %s", err, a)
	}
	return nil
}

// status decodes an answer that has to be a Status.
func (a *answer) status() (*metav1.Status, error) {
	s := new(metav1.Status)
	if err := json.Unmarshal(a.body, s); err != nil || s.Kind != "Status" || s.APIVersion != "v1" {
		return nil, fmt.Errorf("the answer is no v1 Status: %s", a)
	}
	return s, nil
}

// longestAnswer bounds what is read of one answer.
const longestAnswer = 64 << 20

// exchange sends a request and reads the whole answer, which may take as long
// as the pace of the server allows. It may be called from any goroutine.
func (e *Env) exchange(ctx context.Context, r request) (*answer, error) {
	limit := requestFactor * e.limit()
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, err := e.converse(within, r)
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return nil, e.overdue(ctx, &r, limit)
	case err != nil:
		e.note("%v", err)
		return nil, err
	case r.verb() != http.MethodGet:
		e.server.pace.measured(a.took) // reads may be made to wait for a version
	}
	e.note("%s %s -> %s", r.verb(), r.path, a)
	return a, nil
}

// converse is exchange without a limit of its own and without evidence.
func (e *Env) converse(ctx context.Context, r request) (*answer, error) {
	begin := time.Now()
	response, err := e.send(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.verb(), r.path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: the answer broke off: %w", r.verb(), r.path, err)
	}
	return &answer{code: response.StatusCode, proto: response.ProtoMajor, header: response.Header, body: body, took: time.Since(begin)}, nil
}

func (r *request) verb() string {
	if r.method == "" {
		return http.MethodGet
	}
	return r.method
}

// open sends the request of a stream and returns as soon as the headers are
// there. The stream ends with ctx.
func (e *Env) open(ctx context.Context, r request) (*http.Response, error) {
	limit := requestFactor * e.limit()
	within, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(limit, cancel)
	response, err := e.send(within, r)
	if !timer.Stop() && ctx.Err() == nil {
		if err == nil {
			_ = response.Body.Close() // cancelled as it came
		}
		return nil, e.overdue(ctx, &r, limit)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &streamBody{response.Body, cancel}
	return response, nil
}

// streamBody releases its request's context when it is closed.
type streamBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *streamBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// send returns as soon as the headers are there.
func (e *Env) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.verb(), e.server.base+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "levelwire-verify")
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, header := range r.headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	client := e.server.h2
	if r.http1 {
		client = e.server.h1
	}
	return client.Do(req)
}

// do is exchange for the check's goroutine. A server that has no time for the
// request, and says so, is not tried with it.
func (e *Env) do(r request) *answer {
	a, err := e.exchange(e.ctx, r)
	e.must(err)
	if a.code == http.StatusTooManyRequests {
		e.must(busy(r, a))
	}
	return a
}

func (e *Env) get(path string, headers ...string) *answer {
	return e.do(request{path: path, headers: headers})
}

// list lists ConfigMaps, which has to succeed.
func (e *Env) list(query string) *list { return e.listAt(e.configMaps(), query) }

func (e *Env) listAt(path, query string) *list {
	if query != "" {
		path += "?" + query
	}
	a := e.get(path)
	for begun, limit := time.Now(), e.limit(); a.comesTooEarly(); a = e.get(path) {
		if time.Since(begun) >= limit {
			e.late(limit, "the list %q was refused: %s", query, a)
		}
		e.sleep(time.Second)
	}
	if a.code != http.StatusOK {
		e.failf("the list %q was refused: %s", query, a)
	}
	l := new(list)
	e.must(a.decode(l))
	return l
}

// post creates an object and remembers to delete it.
func (e *Env) post(ctx context.Context, collection, name, body string) (object, error) {
	e.remember(collection + "/" + name)
	return e.write(ctx, request{method: http.MethodPost, path: collection, body: body}, http.StatusCreated)
}

func (e *Env) put(ctx context.Context, path, body string) (object, error) {
	return e.write(ctx, request{method: http.MethodPut, path: path, body: body}, http.StatusOK)
}

// patch applies a merge patch.
func (e *Env) patch(path, body string) *answer {
	return e.do(request{method: http.MethodPatch, path: path, body: body, headers: []string{"Content-Type: application/merge-patch+json"}})
}

func (e *Env) write(ctx context.Context, r request, want int) (written object, err error) {
	a, err := e.exchange(ctx, r)
	if err != nil {
		return written, err
	}
	if a.comesTooEarly() {
		return written, busy(r, a) // it may have been written, so that another try would say nothing
	}
	if a.code != want {
		return written, &refused{request: r, answer: a}
	}
	err = a.decode(&written)
	return written, err
}

// refused is a write that the server did not accept.
type refused struct {
	request request
	answer  *answer
}

func (r *refused) Error() string {
	return fmt.Sprintf("%s %s: %s", r.request.verb(), r.request.path, r.answer)
}

// want is what an error has to look like.
type want struct {
	code    int
	reason  metav1.StatusReason // "" is any
	says    string              // part of the message or of a cause's
	cause   metav1.CauseType    // "" is any or none
	retries bool                // details.retryAfterSeconds is set
}

// compare returns how a Status differs.
func (w want) compare(s *metav1.Status) error {
	switch {
	case s.Status != metav1.StatusFailure:
		return fmt.Errorf("status is %q, not Failure", s.Status)
	case int(s.Code) != w.code:
		return fmt.Errorf("code is %d, not %d: %s", s.Code, w.code, s.Message)
	case w.reason != "" && s.Reason != w.reason:
		return fmt.Errorf("reason is %q, not %s: %s", s.Reason, w.reason, s.Message)
	case w.says != "" && !strings.Contains(s.Message, w.says):
		return fmt.Errorf("the message does not say %q: %s", w.says, s.Message)
	case w.cause != "" && !hasCause(s, w.cause):
		return fmt.Errorf("no cause has the reason %s: %+v", w.cause, s.Details)
	case w.retries && (s.Details == nil || s.Details.RetryAfterSeconds < 1):
		return fmt.Errorf("details.retryAfterSeconds is missing: %+v", s.Details)
	}
	return nil
}

func hasCause(s *metav1.Status, cause metav1.CauseType) bool {
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Type == cause {
			return true
		}
	}
	return false
}

// refuses demands that a request fails, and how.
func (e *Env) refuses(r request, w want) {
	a := e.do(r)
	if a.code != w.code {
		e.failf("%s %s was answered with %d, not %d: %s", r.verb(), r.path, a.code, w.code, excerpt(a.body))
	}
	s, err := a.status()
	e.must(err)
	e.must(w.compare(s))
}

// same says whether two answers have the same body.
func same(a, b *answer) bool { return bytes.Equal(bytes.TrimSpace(a.body), bytes.TrimSpace(b.body)) }

// Errors that several guarantees are about.
var (
	wantInvalid = want{code: 422, reason: metav1.StatusReasonInvalid}
	wantBad     = want{code: 400, reason: metav1.StatusReasonBadRequest}
	wantLarge   = want{
		code: 504, reason: metav1.StatusReasonTimeout, says: "Too large resource version",
		cause: metav1.CauseTypeResourceVersionTooLarge, retries: true,
	}
	wantExpired = want{code: 410, reason: metav1.StatusReasonExpired}
)
