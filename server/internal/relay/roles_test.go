package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// roleUpstream answers lists and watches of roles and bindings.
type roleUpstream struct {
	mu      sync.Mutex
	refuses bool
	// starting: it refuses to say, too, whether it will refuse for long.
	starting bool
	lists    int
	watches  map[string]*io.PipeWriter // by their resource
}

// RoundTrip implements http.RoundTripper.
func (u *roleUpstream) RoundTrip(req *http.Request) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answer := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: req}, nil
	}
	const kind = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`
	switch watch := req.URL.Query().Get("watch") != ""; {
	case u.refuses && req.Method == http.MethodPost && !u.starting:
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false}}`)))
	case u.refuses:
		return answer(http.StatusForbidden, io.NopCloser(strings.NewReader(forbiddenStatus)))
	case watch:
		body, events := io.Pipe()
		context.AfterFunc(req.Context(), func() { _ = body.Close() })
		u.watches[req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]] = events
		return answer(http.StatusOK, body)
	}
	u.lists++
	return answer(http.StatusOK, io.NopCloser(strings.NewReader(kind)))
}

const forbiddenStatus = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`

func (u *roleUpstream) send(t *testing.T, resource, event string) {
	t.Helper()
	u.mu.Lock()
	events := u.watches[resource]
	u.mu.Unlock()
	if events == nil {
		t.Fatalf("%s is not watched", resource)
	}
	if _, err := fmt.Fprintln(events, event); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (u *roleUpstream) refuse(is bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refuses = is
}

// TestRolesAreFollowed: a change of any of the four kinds is reported at once, and once more when
// the upstream surely decides by it; changes in quick succession together.
func TestRolesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := &roleUpstream{watches: map[string]*io.PipeWriter{}, refuses: true}
		var log bytes.Buffer
		reports, stop := followRoles(t, upstream, &log)
		expect := func(what string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := reports.Load(); got != want {
				t.Fatalf("%s: %d reports, want %d", what, got, want)
			}
		}
		expect("refused", 0)
		time.Sleep(retryUnanswered)
		expect("refused for good", 0)
		upstream.refuse(false)
		time.Sleep(retryRefused - time.Nanosecond)
		expect("not yet asked again", 0)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := reports.Load(); got != 2 && got != 3 { // all four at once, or the first and the others; and once more
			t.Fatalf("%d reports of what was missed", got)
		}
		if upstream.lists != len(roleResources) || len(upstream.watches) != len(roleResources) {
			t.Fatalf("%d lists and %d watches", upstream.lists, len(upstream.watches))
		}
		for i, name := range roleResources {
			before := reports.Load()
			upstream.send(t, name, fmt.Sprintf(`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"%d"}}}`, 6+i))
			expect(name, before+1)
			time.Sleep(rolesSettle - time.Nanosecond)
			expect(name+" before it is surely decided by", before+1)
			time.Sleep(time.Nanosecond)
			expect(name+" once more", before+2)
			time.Sleep(rolesPause)
		}
		before := reports.Load()
		for i := range 10 {
			upstream.send(t, "roles", fmt.Sprintf(`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","resourceVersion":"%d"}}}`, 20+i))
		}
		time.Sleep(time.Second)
		expect("ten changes", before+3)
		if upstream.lists != len(roleResources) {
			t.Errorf("%d lists", upstream.lists)
		}
		if log.Len() > 0 {
			t.Errorf("logged %s", &log)
		}
		upstream.refuse(true)
		upstream.send(t, "roles", `{"type":"ERROR","object":`+forbiddenStatus+`}`)
		time.Sleep(refusalPatience / 2)
		synctest.Wait()
		if got := log.String(); strings.Count(got, "does not show the relay its roles and bindings any more") != 1 || !strings.Contains(got, "resource=roles.rbac.authorization.k8s.io") {
			t.Errorf("logged %s", got)
		}
		stop()
	})
}

// followRoles has a relay follow the roles of an upstream, until stop is called. It counts the reports.
func followRoles(t *testing.T, upstream *roleUpstream, log *bytes.Buffer) (reports *atomic.Int64, stop func()) {
	t.Helper()
	r, err := New(Options{Config: &rest.Config{Host: "http://upstream", WrapTransport: func(http.RoundTripper) http.RoundTripper { return upstream }}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r.contact.once.Do(func() { close(r.contact.made) })
	ctx, cancel := context.WithCancel(t.Context())
	reports = &atomic.Int64{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.FollowRoles(ctx, func() { reports.Add(1) })
	}()
	return reports, func() {
		cancel()
		<-ended
	}
}

// TestRolesOfAnUpstreamThatStarts: an upstream that has not read its roles refuses to show them, too. The relay asks again soon, and
// goes on where it was.
func TestRolesOfAnUpstreamThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := &roleUpstream{watches: map[string]*io.PipeWriter{}, refuses: true, starting: true}
		var log bytes.Buffer
		reports, stop := followRoles(t, upstream, &log)
		synctest.Wait()
		upstream.refuse(false)
		time.Sleep(retryUnanswered)
		synctest.Wait()
		if reports.Load() == 0 || len(upstream.watches) != len(roleResources) {
			t.Errorf("%d reports, %d watches", reports.Load(), len(upstream.watches))
		}
		for i, name := range roleResources {
			upstream.send(t, name, fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"}}}`, 6+i))
		}
		upstream.refuse(true)
		for _, name := range roleResources {
			upstream.send(t, name, `{"type":"ERROR","object":`+forbiddenStatus+`}`)
		}
		time.Sleep(refusalPatience - retryUnanswered)
		clear(upstream.watches)
		upstream.refuse(false)
		time.Sleep(2 * retryUnanswered) // with a random part
		synctest.Wait()
		if len(upstream.watches) != len(roleResources) || upstream.lists != len(roleResources) {
			t.Errorf("%d watches, and %d lists", len(upstream.watches), upstream.lists)
		}
		if strings.Contains(log.String(), "any more") {
			t.Errorf("logged %s", &log)
		}
		stop()
	})
}

// TestMissingRoleRightsAreLogged in one line that names them.
func TestMissingRoleRightsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := &Relay{opts: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		r.logLacking(t.Context(), func(context.Context) ([]string, error) {
			return []string{nameOf(roleRights[0]), nameOf(roleRights[1])}, nil
		}, r.warnOfRoles)
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `lacks="list clusterroles.rbac.authorization.k8s.io, watch clusterroles.rbac.authorization.k8s.io"`) {
			t.Errorf("logged %s", got)
		}
	})
	if len(roleRights) != 2*len(roleResources) {
		t.Errorf("%d rights", len(roleRights))
	}
}
