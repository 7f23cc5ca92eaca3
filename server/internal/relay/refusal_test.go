package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/storage"
)

// guarded is an upstream of config maps that may refuse the relay. Its watches can be cut.
type guarded struct {
	mu      sync.Mutex
	refuses bool
	reviews string // what it answers to SelfSubjectAccessReviews
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
		asked, _ := io.ReadAll(req.Body)
		status := map[string]string{
			"allowed": `"allowed":true`, "denied": `"allowed":false,"reason":"no"`, "failed": `"allowed":false,"evaluationError":"a webhook does not answer"`,
			"without a role": `"allowed":false,"reason":"RBAC: clusterrole.rbac.authorization.k8s.io \"relay\" not found"`,
			"watch denied":   fmt.Sprintf(`"allowed":%t`, !bytes.Contains(asked, []byte("watch"))),
		}[g.reviews]
		_, _ = fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{%s}}`, status)
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

// asksAgain waits until the upstream has refused so many more watches.
func (g *guarded) asksAgain(t *testing.T, times int) {
	t.Helper()
	before := g.refusals()
	testwait.Stable(t, "the relay asks again and again", func() (any, bool) { n := g.refusals(); return n, n >= before+times })
}

// TestUpstreamHasNotReadItsRoles: a kube-apiserver that has just started refuses everything, also the question whether the relay may
// see the resource, or answers that by a part of its roles. That costs the cache, its watches and clients nothing.
func TestUpstreamHasNotReadItsRoles(t *testing.T) {
	for _, reviews := range []string{"refused", "allowed", "without a role", "failed"} {
		t.Run(reviews, func(t *testing.T) {
			t.Parallel()
			upstream, s, now := guardedSource(t)
			upstream.refuse(true, reviews)
			upstream.asksAgain(t, 1)
			if _, err := s.Current(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !apierrors.IsServiceUnavailable(err) {
				t.Errorf("the version is asked for: %v, want an error that says to try again", err)
			}
			now.advance(refusalPatience - 1)
			upstream.asksAgain(t, 1)
			upstream.refuse(false, reviews)
			<-upstream.resumed
			upstream.mu.Lock()
			lists := upstream.lists
			upstream.mu.Unlock()
			if lists != 1 || s.isBroken() {
				t.Errorf("%d lists, dropped: %t", lists, s.isBroken())
			}
		})
	}
}

// TestFinal: a refusal will last if the upstream says so twice, or refuses for long.
func TestFinal(t *testing.T) {
	type step struct {
		after   time.Duration // since the step before
		reviews string        // "end": the upstream shows the resource
		final   bool
	}
	const half = refusalPatience / 2
	for name, steps := range map[string][]step{
		"denied":              {{0, "denied", false}, {refusalPause, "denied", true}},
		"denied at once":      {{0, "denied", false}, {refusalPause - 1, "denied", false}, {1, "denied", true}},
		"only the watch":      {{0, "watch denied", false}, {refusalPause, "watch denied", true}},
		"denied by half":      {{0, "denied", false}, {refusalPause, "refused", false}, {refusalPause, "denied", false}, {refusalPause, "allowed", false}, {refusalPause, "denied", false}},
		"without a role":      {{0, "without a role", false}, {refusalPause, "without a role", false}},
		"a webhook":           {{0, "failed", false}, {refusalPause, "failed", false}},
		"for long":            {{0, "refused", false}, {half, "allowed", false}, {half - 1, "failed", false}, {1, "refused", true}},
		"shown meanwhile":     {{0, "denied", false}, {half, "end", false}, {half, "denied", false}, {half, "refused", false}},
		"no answer meanwhile": {{0, "denied", false}, {refusalPatience + 1, "denied", false}, {refusalPause, "denied", true}},
		"seldom":              {{0, "refused", false}, {refusalPatience, "refused", true}},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := &guarded{}
			r := relayOf(t, upstream.ServeHTTP)
			now := time.Unix(1_000_000, 0)
			r.contact.now = func() time.Time { return now }
			var f refusals
			for i, step := range steps {
				now = now.Add(step.after)
				if step.reviews == "end" {
					f.end()
					continue
				}
				upstream.reviews = step.reviews
				if got := f.final(t.Context(), r, schema.GroupResource{Resource: "configmaps"}, "list", "watch"); got != step.final {
					t.Errorf("step %d: %t", i, got)
				}
			}
		})
	}
}

// TestWithdrawnRightDropsTheCache at the second denial, and at once before a stream has followed the list that filled it.
func TestWithdrawnRightDropsTheCache(t *testing.T) {
	t.Run("denied", func(t *testing.T) {
		t.Parallel()
		upstream, s, now := guardedSource(t)
		upstream.refuse(true, "denied")
		upstream.asksAgain(t, 2)
		if s.isBroken() {
			t.Error("the cache is dropped after the first denial, which may come from a part of the roles")
		}
		now.advance(refusalPause)
		<-s.broken
	})
	t.Run("before a stream", func(t *testing.T) {
		t.Parallel()
		upstream, s, _ := guardedSource(t)
		s.unwatched.Store(true)
		upstream.refuse(true, "allowed")
		<-s.broken
	})
}

// TestQuestionIsRefused: a relay that has a stream and may not list passes consistent lists on, once the upstream has said twice that
// it may not.
func TestQuestionIsRefused(t *testing.T) {
	upstream, s, now := guardedSource(t)
	upstream.mu.Lock()
	upstream.refuses, upstream.reviews = true, "denied"
	upstream.mu.Unlock()
	if _, err := s.Current(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("the first time: %v, want an error that says to try again", err)
	}
	now.advance(refusalPause)
	if _, err := s.Current(t.Context()); !errors.Is(err, errMayNotList) || !apierrors.IsForbidden(err) {
		t.Errorf("the second time: %v, want that the relay may not list", err)
	}
	if s.isBroken() {
		t.Error("the cache is dropped, although its stream is open")
	}
}
