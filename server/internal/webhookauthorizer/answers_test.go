package webhookauthorizer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// TestAnswersAreBounded in bytes, whatever users are called, and those that were used last are
// kept.
func TestAnswersAreBounded(t *testing.T) {
	reason := strings.Repeat("r", 1000)
	a, asked := newWebhook(t, func(r *authorizationv1.SubjectAccessReview) int {
		r.Status.Allowed, r.Status.Reason = true, reason
		return http.StatusOK
	})
	cached := &a.questions.answers
	cached.maxBytes = 10 * (answerBytes + len(reason))
	long := strings.Repeat("n", 100_000)
	ask := func(i int) {
		t.Helper()
		attributes := auth.Attributes{
			User: auth.User{Name: fmt.Sprint(long, i), Groups: []string{long}, Extra: map[string][]string{"k": {long}}},
			Verb: "list", Resource: "pods", LabelSelector: "app=x", Path: "/x",
		}
		if i%2 == 0 { // what is asked of paths
			attributes.Resource, attributes.LabelSelector = "", ""
		}
		if decision, got, err := a.Authorize(t.Context(), attributes); decision != auth.Allow || got != reason || err != nil {
			t.Fatalf("decision %d, %d bytes, %v", decision, len(got), err)
		}
	}
	for i := range 10 {
		ask(i)
	}
	for range 3 {
		ask(0)
		ask(1)
	}
	if asked.Load() != 10 || cached.bytes != cached.maxBytes || len(cached.held) != 10 || cached.used.Len() != 10 {
		t.Fatalf("%d requests for 10 questions; %d bytes of %d, %d answers", asked.Load(), cached.bytes, cached.maxBytes, len(cached.held))
	}
	for i := range 8 {
		ask(10 + i) // in place of all but 0 and 1
	}
	ask(0)
	ask(1)
	if asked.Load() != 18 {
		t.Errorf("%d requests for 18 questions: what was used last is not kept", asked.Load())
	}
	ask(2)
	ask(3) // no other cache has them
	if asked.Load() != 20 || cached.bytes != cached.maxBytes || len(cached.held) != 10 {
		t.Errorf("%d requests, %d bytes, %d answers, want 20, %d and 10", asked.Load(), cached.bytes, len(cached.held), cached.maxBytes)
	}
	reason = strings.Repeat("r", cached.maxBytes)
	ask(20)
	if cached.bytes != 0 || len(cached.held) != 0 || cached.used.Len() != 0 {
		t.Errorf("%d bytes, %d answers after one that is longer than all may be", cached.bytes, len(cached.held))
	}
}

// TestAnswersEnd after a time, which is another one for refusals.
func TestAnswersEnd(t *testing.T) {
	allowed := true
	a, asked := newWebhook(t, func(r *authorizationv1.SubjectAccessReview) int {
		r.Status.Allowed = allowed
		return http.StatusOK
	})
	now := time.Unix(1_000_000, 0)
	cached := &a.questions.answers
	cached.now = func() time.Time { return now }
	cached.allowedTTL, cached.deniedTTL = 10*time.Second, 5*time.Second
	ask := func(want auth.Decision, requests int32) {
		t.Helper()
		decision, _, err := a.Authorize(t.Context(), auth.Attributes{User: auth.User{Name: "jane"}, Verb: "list", Resource: "pods"})
		if decision != want || err != nil || asked.Load() != requests {
			t.Errorf("decision %d, %v, after %d requests, want %d after %d", decision, err, asked.Load(), want, requests)
		}
	}
	ask(auth.Allow, 1)
	allowed = false
	now = now.Add(10*time.Second - 1)
	ask(auth.Allow, 1)
	now = now.Add(1)
	ask(auth.NoOpinion, 2)
	now = now.Add(5*time.Second - 1)
	ask(auth.NoOpinion, 2)
	allowed = true
	now = now.Add(1)
	ask(auth.Allow, 3)
	cached.allowedTTL = 0
	now = now.Add(10 * time.Second)
	ask(auth.Allow, 4)
	ask(auth.Allow, 5)
}

// TestRequestThatDoesNotWait gets an answer that is known, and asks no question.
func TestRequestThatDoesNotWait(t *testing.T) {
	a, asked := newWebhook(t, func(r *authorizationv1.SubjectAccessReview) int {
		r.Status.Allowed = true
		return http.StatusOK
	})
	attributes := auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Path: "/healthz"}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if decision, _, err := a.Authorize(ended, attributes); decision != auth.NoOpinion || !errors.Is(err, context.Canceled) {
		t.Errorf("decision %d, %v", decision, err)
	}
	if decision, _, err := a.Authorize(t.Context(), attributes); decision != auth.Allow || err != nil || asked.Load() != 1 {
		t.Errorf("decision %d, %v, after %d requests", decision, err, asked.Load())
	}
	if decision, _, err := a.Authorize(ended, attributes); decision != auth.Allow || err != nil || asked.Load() != 1 {
		t.Errorf("decision %d, %v, after %d requests", decision, err, asked.Load())
	}
}
