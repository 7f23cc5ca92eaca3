package leader

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

// used is a rate limiter of which other requests take all there is for a long time.
type used struct{}

func (used) Wait(context.Context) error { return errors.New("not before the deadline") }

// A process must not lose its Lease because it sends many requests.
func TestLeaderDoesNotWaitForTheRateLimiter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"lease"}}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"lease","resourceVersion":"1"},"spec":{"holderIdentity":"a"}}`))
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{RateLimiter: used{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	e, err := New(c, Options{Namespace: "ns", Name: "lease", Identity: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := e.attempt(t.Context(), DefaultRenewDeadline)
	defer cancel()
	for _, doing := range []string{"created", "renewed"} {
		if held, err := e.claim(ctx, false); !held || err != nil {
			t.Errorf("not %s: %v", doing, err)
		}
	}
	if err := e.release(ctx); err != nil {
		t.Error(err)
	}
}
