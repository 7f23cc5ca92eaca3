package levelwiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Faults makes requests of a client fail on purpose, and remembers all of them. Its
// zero value lets everything pass. It is safe for concurrent use.
//
//	faults := new(levelwiretest.Faults)
//	c := levelwiretest.NewClient(t, client.Options{WrapTransport: faults.Wrap})
//	faults.Add(levelwiretest.Fault{Verb: "update", Resource: "pods", Times: 1, LoseAnswer: true})
type Faults struct {
	mu       sync.Mutex
	faults   []*Fault
	down     bool
	requests []Request
	watches  map[*watchBody]struct{}
}

// Fault is what happens to some requests. It selects those whose fields are equal to
// its own; an empty field selects all. Of what happens, the first that is set counts,
// after Delay. If nothing is set, the requests pass, as exceptions to a fault that was added before.
type Fault struct {
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or
	// difference (client.Resource.Difference), or the method in lower case for a path
	// that is not a resource's. Informers list by a watch with initial events: such a
	// request is selected by "list" and by "watch".
	Verb        string
	Resource    string // plural, as in the path
	Subresource string
	Namespace   string
	Name        string
	// Times is for how many requests; 0: until it is removed.
	Times int

	// Delay is how long the request waits first.
	Delay time.Duration
	// React decides what the client gets. next sends the request to the server.
	React func(req Request, next func() (*http.Response, error)) (*http.Response, error)
	// Err is the answer, and the server does not see the request. An error of
	// apierrors is sent as its Status, with its Retry-After if it has one; any other is one of
	// the connection.
	Err error
	// LoseAnswer cuts the connection when the server has answered: what was
	// written is written.
	LoseAnswer bool
}

// Request is a request that a client made.
type Request struct {
	Verb                             string // as in Fault; with InitialEvents it is "watch"
	InitialEvents                    bool   // a watch that lists first: sendInitialEvents is true
	Group, Version, Resource         string // empty for what is not a resource
	Namespace, Name, Subresource     string
	Path, Query, ContentType, Accept string
	Body                             []byte
}

// rememberedRequests bounds the memory of a test that runs for long.
const rememberedRequests = 10_000

// Add makes a fault happen from now on. Of several that select a request, the one
// that was added last happens. remove ends it. Add panics if no request can be
// selected: a test would pass for the wrong reason.
func (f *Faults) Add(fault Fault) (remove func()) {
	if err := fault.check(); err != nil {
		panic("levelwiretest: " + err.Error())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	added := &fault
	f.faults = append(f.faults, added)
	return func() { f.remove(added) }
}

func (f *Faults) remove(fault *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = slices.DeleteFunc(f.faults, func(other *Fault) bool { return other == fault })
}

// SetDown makes the server unreachable, or reachable again: running watches are cut,
// and requests are refused as by a machine without a server. Nothing of what is written
// after SetDown(true) has returned reaches a client before SetDown(false).
func (f *Faults) SetDown(down bool) {
	f.mu.Lock()
	f.down = down
	f.mu.Unlock()
	if down {
		f.CutWatches()
	}
}

// CutWatches cuts the connections of all watches that run, and returns how many there
// were. They show nothing that is written after that.
func (f *Faults) CutWatches() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watches {
		w.end(errCut)
	}
	n := len(f.watches)
	clear(f.watches)
	return n
}

// Requests returns the requests so far, of which the last 10,000 are remembered, in
// the order in which they began. Repeats by the client are requests of their own.
func (f *Faults) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Count returns how many of the requests that Requests returns are selected by the
// fields Verb, Resource, Subresource, Namespace and Name of a fault, an empty field
// selecting all. With the verb "list" it counts the lists of informers, too.
func (f *Faults) Count(like Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, req := range f.requests {
		if like.selects(req) {
			n++
		}
	}
	return n
}

var (
	errCut     = errors.New("levelwiretest: the connection was cut on purpose")
	errRefused = &refused{}
)

// refused is what a client sees of a server that does not run.
type refused struct{}

func (*refused) Error() string { return "levelwiretest: the server is down on purpose" }
func (*refused) Unwrap() error { return syscall.ECONNREFUSED }

// Wrap is for client.Options.WrapTransport, or WrapTransport of client-go's
// rest.Config.
func (f *Faults) Wrap(next http.RoundTripper) http.RoundTripper { return faultTransport{f, next} }

type faultTransport struct {
	faults *Faults
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t faultTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	seen, req, err := describe(req)
	if err != nil {
		return nil, err
	}
	fault, down := t.faults.take(seen)
	if down {
		return nil, errRefused
	}
	if fault.Delay > 0 {
		if err := sleep(req.Context(), fault.Delay); err != nil {
			return nil, err
		}
	}
	next := func() (*http.Response, error) { return t.send(seen, req) }
	switch {
	case fault.React != nil:
		return fault.React(seen, next)
	case fault.Err != nil:
		return answer(req, fault.Err)
	case fault.LoseAnswer:
		resp, err := next()
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // the server has written it
			err = errors.Join(errCut, resp.Body.Close())
		}
		return nil, err
	}
	return next()
}

// take remembers a request, and returns the fault that happens to it, which is empty
// if there is none.
func (f *Faults) take(req Request) (fault Fault, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests = append(f.requests, req); len(f.requests) > rememberedRequests {
		f.requests = slices.Delete(f.requests, 0, len(f.requests)-rememberedRequests)
	}
	for i := len(f.faults) - 1; i >= 0 && !f.down; i-- {
		candidate := f.faults[i]
		if !candidate.selects(req) {
			continue
		}
		fault = *candidate
		if candidate.Times == 1 {
			f.faults = slices.Delete(f.faults, i, i+1)
		} else if candidate.Times > 1 {
			candidate.Times--
		}
		break
	}
	return fault, f.down
}

// verbs are those of requests for resources, and methods in lower case.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "difference", "head", "options"}

// check returns an error for a fault that never happens.
func (f *Fault) check() error {
	switch {
	case f.Verb != "" && !slices.Contains(verbs, f.Verb):
		return fmt.Errorf("no request has the verb %q: it is one of %s", f.Verb, strings.Join(verbs, ", "))
	case strings.ContainsAny(f.Resource, "/.") || f.Resource != strings.ToLower(f.Resource):
		return fmt.Errorf("no request is for the resource %q: it is the plural as in the path, such as pods, without group; a subresource has a field of its own", f.Resource)
	case strings.Contains(f.Subresource, "/"):
		return fmt.Errorf("no request is for the subresource %q: it is one name, such as status", f.Subresource)
	case f.Times < 0:
		return fmt.Errorf("a fault cannot happen %d times", f.Times)
	}
	return nil
}

func (f *Fault) selects(req Request) bool {
	if f.Verb != "" && f.Verb != req.Verb && (f.Verb != "list" || !req.InitialEvents) {
		return false
	}
	for _, field := range [][2]string{
		{f.Resource, req.Resource}, {f.Subresource, req.Subresource}, {f.Namespace, req.Namespace}, {f.Name, req.Name},
	} {
		if field[0] != "" && field[0] != field[1] {
			return false
		}
	}
	return true
}

// send sends a request to the server; a watch can be cut later.
func (t faultTransport) send(seen Request, req *http.Request) (*http.Response, error) {
	if seen.Verb != "watch" {
		return t.next.RoundTrip(req)
	}
	ctx, end := context.WithCancelCause(req.Context())
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		end(err)
		return nil, err
	}
	body := &watchBody{ReadCloser: resp.Body, ctx: ctx, end: end, faults: t.faults}
	if !t.faults.opened(body) {
		end(errCut)
		_ = resp.Body.Close()
		return nil, errRefused
	}
	resp.Body = body
	return resp, nil
}

// opened notes a watch that can be cut, unless the server is down since it was asked for.
func (f *Faults) opened(body *watchBody) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return false
	}
	if f.watches == nil {
		f.watches = map[*watchBody]struct{}{}
	}
	f.watches[body] = struct{}{}
	return true
}

// watchBody is the body of a watch that can be cut.
type watchBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // the request's, which ends the body
	end    context.CancelCauseFunc
	faults *Faults
}

// Read implements io.Reader. The server may go on to write for a moment after the cut,
// which nobody sees.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(context.Cause(b.ctx), errCut) {
		return 0, errCut
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchBody) Close() error {
	b.faults.mu.Lock()
	delete(b.faults.watches, b)
	b.faults.mu.Unlock()
	err := b.ReadCloser.Close()
	b.end(nil)
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer is what a client gets in place of the server's answer.
func answer(req *http.Request, err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	sent := status.Status()
	sent.Kind, sent.APIVersion = "Status", "v1"
	body, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if sent.Details != nil && sent.Details.RetryAfterSeconds > 0 { // clients read the header
		header.Set("Retry-After", strconv.Itoa(int(sent.Details.RetryAfterSeconds)))
	}
	return &http.Response{
		Status: http.StatusText(int(sent.Code)), StatusCode: int(sent.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)), Request: req,
	}, nil
}
