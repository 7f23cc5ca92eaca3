package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/storage"
)

// guarded is an upstream of config maps that may refuse the relay. Its watches can be cut.
type guarded struct {
	mu      sync.Mutex
	refuses bool
	reviews string // what it answers to SelfSubjectAccessReviews: "allowed", "denied" or "refused"
	refused int    // watches
	lists   int    // also watches that begin with the state
	resumed chan struct{}
	cut     chan struct{} // closed to end the watches
}

// ServeHTTP implements http.Handler.
func (g *guarded) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	g.mu.Lock()
	defer g.mu.Unlock()
	query := req.URL.Query()
	watch, begins := query.Get("watch") != "", query.Get("sendInitialEvents") == "true"
	review := req.Method == http.MethodPost
	switch {
	case req.URL.Path == "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]}]}`)
	case !review && g.refuses, review && g.reviews == "refused":
		if watch {
			g.refused++
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, forbiddenStatus)
	case review:
		_, _ = fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, g.reviews == "allowed")
	case !watch:
		_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	default:
		if begins {
			g.lists++
			_, _ = io.WriteString(w, bookmark(7, `,"annotations":{"k8s.io/initial-events-end":"true"}`))
		}
		_ = http.NewResponseController(w).Flush()
		cut := g.cut
		g.mu.Unlock()
		defer g.mu.Lock()
		if !begins {
			select {
			case g.resumed <- struct{}{}:
			default:
			}
		}
		select {
		case <-cut:
		case <-req.Context().Done():
		}
	}
}

// refuse has what follows refused, or not, and the watches cut.
func (g *guarded) refuse(is bool, reviews string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuses, g.reviews = is, reviews
	close(g.cut)
	g.cut = make(chan struct{})
}

func (g *guarded) refusals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func guardedSource(t *testing.T) (*guarded, *source, *clock) {
	t.Helper()
	upstream := &guarded{cut: make(chan struct{}), resumed: make(chan struct{}, 1)}
	r, now := runningRelayOf(t, upstream)
	s, err := r.use(r.running, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.cache.Ready():
	case <-s.broken:
		t.Fatal("the cache is not filled")
	}
	return upstream, s, now
}

// TestUpstreamHasNotReadItsRoles: a kube-apiserver that has just started refuses everything, also the question whether the relay may
// see the resource. That costs the cache, its watches and clients nothing.
func TestUpstreamHasNotReadItsRoles(t *testing.T) {
	for _, reviews := range []string{"refused", "allowed"} { // the right, but not the roles that allow the question, or the other way
		t.Run(reviews, func(t *testing.T) {
			t.Parallel()
			upstream, s, now := guardedSource(t)
			upstream.refuse(true, reviews)
			testwait.Stable(t, "the relay asks again and again", func() (any, bool) { n := upstream.refusals(); return n, n >= 2 })
			if _, err := s.Current(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !apierrors.IsServiceUnavailable(err) {
				t.Errorf("the version is asked for: %v, want an error that says to try again", err)
			}
			now.advance(refusalPatience - 1)
			upstream.refuse(false, reviews)
			<-upstream.resumed
			if upstream.lists != 1 || s.isBroken() {
				t.Errorf("%d lists, dropped: %t", upstream.lists, s.isBroken())
			}
			// The next time counts anew.
			now.advance(refusalPatience)
			before := upstream.refusals()
			upstream.refuse(true, reviews)
			testwait.Stable(t, "the relay asks again and again", func() (any, bool) { n := upstream.refusals(); return n, n >= before+2 })
			if s.isBroken() {
				t.Error("the cache is dropped when the upstream starts once more")
			}
		})
	}
}

// TestWithdrawnRightDropsTheCache, at once if the upstream says so, and when it has refused for long.
func TestWithdrawnRightDropsTheCache(t *testing.T) {
	t.Run("denied", func(t *testing.T) {
		t.Parallel()
		upstream, s, _ := guardedSource(t)
		upstream.refuse(true, "denied")
		<-s.broken
		if n := upstream.refusals(); n != 1 {
			t.Errorf("after %d refusals", n)
		}
	})
	t.Run("refused for long", func(t *testing.T) {
		t.Parallel()
		upstream, s, now := guardedSource(t)
		upstream.refuse(true, "refused")
		testwait.Stable(t, "the watch is refused", func() (any, bool) { n := upstream.refusals(); return n, n >= 2 })
		now.advance(refusalPatience)
		<-s.broken
	})
	t.Run("while the stream is open", func(t *testing.T) {
		t.Parallel()
		upstream, s, _ := guardedSource(t)
		upstream.mu.Lock()
		upstream.refuses, upstream.reviews = true, "denied"
		upstream.mu.Unlock()
		if _, err := s.Current(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("the version is asked for: %v", err)
		}
		if !s.isBroken() {
			t.Error("the cache is shown after the upstream has said that the relay may not list it")
		}
	})
}
