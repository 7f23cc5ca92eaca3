package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// longUpstream is an upstream whose relay has no caches: it answers each request when the decisions
// of a relay are made, unless the relay ends the request before.
type longUpstream struct {
	decisions *heldDecisions
	answered  atomic.Int32
}

func (u *longUpstream) Unavailable() error                                 { return nil }
func (u *longUpstream) RoundTripper(aggregation.Kind) http.RoundTripper    { return u }
func (u *longUpstream) SetUser(*http.Request, auth.User)                   {}
func (u *longUpstream) MayAnswer(*http.Request, request.Path, string) bool { return false }
func (u *longUpstream) MayDescribe(*http.Request) bool                     { return false }
func (u *longUpstream) Describe(http.ResponseWriter, *http.Request) error  { return ErrNotCached }
func (u *longUpstream) Declare(http.ResponseWriter, *resource.Resource, string) {
}

func (u *longUpstream) Prepare(context.Context, *http.Request, request.Path, string) (*resource.Resource, func(), error) {
	return nil, nil, ErrNotCached
}

// RoundTrip implements http.RoundTripper. A request that may not be made is answered only once the relay has ended it: an upstream
// is not sooner than the relay's decision.
func (u *longUpstream) RoundTrip(req *http.Request) (*http.Response, error) {
	u.decisions.happened()
	<-u.decisions.released
	if u.decisions.decision == auth.Deny {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	u.answered.Add(1)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("output")), Request: req}, nil
}

// heldDecisions is an authorizer that decides nothing until it is released.
type heldDecisions struct {
	auth.Changes
	decision auth.Decision
	err      error
	events   chan struct{} // receives when a request waits for a decision, or has reached the upstream
	released chan struct{}
}

func (h *heldDecisions) happened() {
	select {
	case h.events <- struct{}{}:
	default: // the test has seen enough
	}
}

// Authorize implements auth.Authorizer.
func (h *heldDecisions) Authorize(ctx context.Context, _ auth.Attributes) (auth.Decision, string, error) {
	if reporter.From(ctx) != nil { // and not the server, which asks again whenever it likes
		h.happened()
	}
	select {
	case <-h.released:
		return h.decision, "", h.err
	case <-ctx.Done():
		return auth.NoOpinion, "", ctx.Err()
	}
}

// TestLongRequestsAreDecidedBeforeTheyArePassedOn: a request that another one joins, among those that end when a right is withdrawn, is
// not passed on either before it is known that the user may make it. Otherwise the no would end it on its way.
func TestLongRequestsAreDecidedBeforeTheyArePassedOn(t *testing.T) {
	for name, test := range map[string]struct {
		decision auth.Decision
		err      error
		code     int
	}{
		"allowed":   {auth.Allow, nil, http.StatusOK},
		"forbidden": {auth.Deny, nil, http.StatusForbidden},
		"undecided": {auth.NoOpinion, errors.New("the upstream does not answer the question"), http.StatusOK}, // it authorizes the request itself
	} {
		t.Run(name, func(t *testing.T) {
			decisions := &heldDecisions{decision: test.decision, err: test.err, events: make(chan struct{}, 2), released: make(chan struct{})}
			upstream := &longUpstream{decisions: decisions}
			c := newCluster(t, func(s *setup) { s.config.Upstream, s.config.Authorizer = upstream, decisions })
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { c.wantExec(t, test.code) })
			}
			<-decisions.events
			<-decisions.events
			close(decisions.released)
			both.Wait()
			for range 2 { // one after the other
				c.wantExec(t, test.code)
			}
			if reached := upstream.answered.Load(); reached != 4 && test.code == http.StatusOK || reached > 0 && test.code != http.StatusOK {
				t.Errorf("%d requests were passed on", reached)
			}
		})
	}
}

// wantExec asks for an exec, and reports an error unless it is answered with a code. Any goroutine may call it.
func (c *cluster) wantExec(t *testing.T, code int) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/api/v1/namespaces/a/pods/p/exec?command=sh", http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	resp, err := c.client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != code {
		t.Errorf("%s %s, %v, want %d", resp.Status, body, err, code)
	}
}
