package customresource

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/webhookclient"
)

// called is a hook whose transport is a function, and a conversion by it that has
// the time of a conversion.
func called(transport transportFunc) func(ctx context.Context) error {
	d := &definition{convert: &hook{kind: "Gadget", version: "v1", client: webhookclient.WithTransport("https://hook", transport)}}
	return func(ctx context.Context) error {
		ctx, cancel := d.boundConversion(ctx)
		defer cancel()
		sent := &unstructured.Unstructured{Object: map[string]any{"kind": "Gadget", "apiVersion": "example.com/v1beta1"}}
		_, err := d.convert.convert(ctx, []*unstructured.Unstructured{sent}, "example.com/v1")
		return err
	}
}

// TestDeadWebhooksAreRemembered: for a second after a call that was not answered, the
// webhook is not called. Answers, and callers that leave, say nothing of that kind.
func TestDeadWebhooksAreRemembered(t *testing.T) {
	reply := func(code int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	for name, test := range map[string]struct {
		transport  transportFunc
		remembered bool
		says       string
	}{
		"refused":    {func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }, true, "connection refused"},
		"hangs":      {func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, true, "it did not answer within 30s"},
		"no backend": {func(*http.Request) (*http.Response, error) { return reply(503, "no backend") }, true, "no backend"},
		"broken":     {func(*http.Request) (*http.Response, error) { return reply(500, "a bug") }, false, "a bug"},
		"nonsense":   {func(*http.Request) (*http.Response, error) { return reply(200, "hello") }, false, "no ConversionReview"},
		"no address": {func(*http.Request) (*http.Response, error) {
			return nil, &webhookclient.ResolveError{Cause: errors.New("no such Service")}
		}, false, "no such Service"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				convert := called(func(r *http.Request) (*http.Response, error) { calls++; return test.transport(r) })
				for range 10 {
					if err := convert(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
						t.Fatalf("got %v", err)
					}
				}
				if want := map[bool]int{true: 1, false: 10}[test.remembered]; calls != want {
					t.Errorf("%d calls for 10 conversions, want %d", calls, want)
				}
				calls = 0
				time.Sleep(unavailableFor)
				if _ = convert(t.Context()); calls != 1 {
					t.Errorf("%d calls a second later", calls)
				}
			})
		})
	}
}

// TestTimeoutsAreNamed: a webhook that hangs is named, with what it was waited for,
// also if it is the request whose time is over first. The error is not taken for the
// store's.
func TestTimeoutsAreNamed(t *testing.T) {
	hang := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	silent := func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
		return hang(r)
	}
	for name, test := range map[string]struct {
		transport transportFunc
		limit     time.Duration // of the request
		says      string
	}{
		"no connection":                {hang, time.Minute, "https://hook: there was no connection: it did not answer within 30s"},
		"no answer":                    {silent, time.Minute, "https://hook: it did not answer within 30s"},
		"no connection in the request": {hang, time.Second, "https://hook: there was no connection: it did not answer within the request's time limit"},
		"no answer in the request":     {silent, time.Second, "https://hook: it did not answer within the request's time limit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.limit)
				defer cancel()
				err := called(test.transport)(ctx)
				if err == nil || !strings.HasSuffix(err.Error(), test.says) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestOneObjectDoesNotMakeAWebhookUnavailable: while the webhook answers others, a
// call that hangs is not held against it, and neither is one that its caller ends.
func TestOneObjectDoesNotMakeAWebhookUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := true
		convert := called(func(r *http.Request) (*http.Response, error) {
			if hang {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}"))}, nil
		})
		hung := make(chan error)
		go func() { hung <- convert(t.Context()) }()
		synctest.Wait()
		time.Sleep(time.Second)
		hang = false
		_ = convert(t.Context())
		<-hung
		if err := convert(t.Context()); err == nil || strings.Contains(err.Error(), "within 30s") {
			t.Errorf("after another conversion has timed out: %v", err)
		}
		hang = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = convert(ctx)
		hang = false
		if err := convert(t.Context()); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a caller has left: %v", err)
		}
	})
}

// TestCallsOfAWebhookAreBounded: a webhook that hangs keeps some calls, and what is
// beyond them is refused at once.
func TestCallsOfAWebhookAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		convert := called(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		for range maxConversions {
			go func() { done <- convert(ctx) }()
		}
		synctest.Wait()
		if err := convert(ctx); !apierrors.IsTooManyRequests(err) {
			t.Errorf("got %v", err)
		}
		cancel()
		for range maxConversions {
			<-done
		}
	})
}
