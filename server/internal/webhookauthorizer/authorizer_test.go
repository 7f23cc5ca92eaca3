package webhookauthorizer

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// newWebhook serves answer, and returns the Authorizer that asks it and the number of
// its requests.
func newWebhook(t *testing.T, answer func(*authorizationv1.SubjectAccessReview) int) (*Authorizer, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		code := answer(&review)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"w","cluster":{"server":"` + s.URL + `"}}],"users":[{"name":"u"}],` +
		`"contexts":[{"name":"c","context":{"cluster":"w","user":"u"}}],"current-context":"c"}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{ConfigFile: file, Version: "v1", AllowedTTL: time.Hour, DeniedTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return a, &asked
}

// TestWebhook: the other server is asked once, with everything that is known, and its
// answer decides.
func TestWebhook(t *testing.T) {
	var spec authorizationv1.SubjectAccessReviewSpec
	a, asked := newWebhook(t, func(r *authorizationv1.SubjectAccessReview) int {
		spec = r.Spec
		r.Status.Allowed = r.Spec.ResourceAttributes != nil
		r.Status.Denied = r.Spec.User == "eve"
		if r.Status.Denied {
			r.Status.Allowed = false
		}
		r.Status.Reason = "because"
		return http.StatusOK
	})
	jane := auth.Attributes{
		User: auth.User{Name: "jane", UID: "u", Groups: []string{"dev"}, Extra: map[string][]string{"k": {"v"}}},
		Verb: "list", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a", Path: "/x", FieldSelector: "metadata.name=b", LabelSelector: "app in (x,y),!old",
	}
	for range 3 {
		if decision, reason, err := a.Authorize(t.Context(), jane); decision != auth.Allow || reason != "because" || err != nil {
			t.Fatalf("decision %d, %q, %v", decision, reason, err)
		}
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "jane", UID: "u", Groups: []string{"dev"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a",
			FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: "metadata.name", Operator: metav1.FieldSelectorOpIn, Values: []string{"b"}},
			}},
			LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}},
				{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
		},
	}
	if !reflect.DeepEqual(spec, want) || asked.Load() != 1 {
		t.Errorf("%d requests, the last with\n%+v, want\n%+v", asked.Load(), spec, want)
	}
	eve := jane
	eve.User.Name = "eve"
	if decision, _, err := a.Authorize(t.Context(), eve); decision != auth.Deny || err != nil {
		t.Errorf("eve: decision %d, %v", decision, err)
	}
	if decision, _, err := a.Authorize(t.Context(), auth.Attributes{User: jane.User, Verb: "get", Path: "/metrics"}); decision != auth.NoOpinion || err != nil {
		t.Errorf("a path: decision %d, %v", decision, err)
	}
	if rules := a.Rules(t.Context(), jane.User, "a"); !rules.Incomplete || rules.Problem == "" {
		t.Errorf("%+v", rules)
	}
}

// TestWebhookErrors leave the decision to other authorizers, and are told.
func TestWebhookErrors(t *testing.T) {
	a, _ := newWebhook(t, func(*authorizationv1.SubjectAccessReview) int { return http.StatusForbidden })
	if decision, _, err := a.Authorize(t.Context(), auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Resource: "pods"}); decision != auth.NoOpinion || err == nil {
		t.Errorf("decision %d, %v", decision, err)
	}
	if _, err := New(Options{ConfigFile: "no/such/file", Version: "v1"}); err == nil {
		t.Error("a file that does not exist is accepted")
	}
}

// TestQuestionsAreShared by requests that ask the same while it is asked; the question does not
// end with the request that was the first, and ends with the last.
func TestQuestionsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, ended int
		answer := make(chan struct{})
		q := questions{share: time.Second, now: time.Now, asked: map[digest]*question{}}
		q.ask = func(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
			asked++
			select {
			case <-answer:
				return auth.Allow, a.User.Name, nil
			case <-ctx.Done():
				ended++
				return auth.NoOpinion, "", ctx.Err()
			}
		}
		first, leaveFirst := context.WithCancel(t.Context())
		rest, leaveRest := context.WithCancel(t.Context())
		allowed := make(chan string, 100)
		start := func(ctx context.Context, user string) {
			go func() {
				if decision, reason, err := q.Authorize(ctx, auth.Attributes{User: auth.User{Name: user}, Verb: "list", Resource: "pods", Path: "/" + user}); decision == auth.Allow && err == nil {
					allowed <- reason
				}
			}()
			synctest.Wait()
		}
		start(first, "jane")
		for range 10 {
			start(rest, "jane")
		}
		start(rest, "joe")
		leaveFirst()
		synctest.Wait()
		if asked != 2 || ended != 0 {
			t.Fatalf("%d questions were asked, and %d ended, want 2 and 0", asked, ended)
		}
		time.Sleep(time.Second) // now the answer could be older than what may be cached
		start(rest, "jane")
		if asked != 3 {
			t.Fatalf("an answer that may be %s old was shared", time.Second)
		}
		answer <- struct{}{}
		answer <- struct{}{}
		synctest.Wait()
		leaveRest()
		synctest.Wait()
		if ended != 1 || len(q.asked) != 0 {
			t.Errorf("%d questions ended, and %d are left, want 1 and 0", ended, len(q.asked))
		}
		close(answer)
		start(t.Context(), "jane")
		if asked != 4 || len(allowed) < 3 {
			t.Errorf("%d questions, %d were allowed", asked, len(allowed))
		}
	})
}

// TestForget: after it, no answer counts that was asked for before, neither one that is remembered
// nor one that is under way.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Authorizer{}
		var asked []chan auth.Decision
		a.questions = questions{share: time.Hour, now: time.Now, asked: map[digest]*question{}, answers: answers{
			allowedTTL: time.Hour, deniedTTL: time.Hour, maxBytes: maxAnswerBytes, now: time.Now,
		}}
		a.questions.ask = func(context.Context, auth.Attributes) (auth.Decision, string, error) {
			answer := make(chan auth.Decision)
			asked = append(asked, answer)
			return <-answer, "", nil
		}
		reports := 0
		defer a.OnChange(func(user string) {
			if reports++; user != "" {
				t.Errorf("reported a change for %s only", user)
			}
		})()
		decisions := make(chan auth.Decision, 10)
		request := func(questions int) {
			t.Helper()
			go func() {
				decision, _, err := a.Authorize(t.Context(), auth.Attributes{User: auth.User{Name: "jane"}, Verb: "watch", Resource: "pods"})
				if err != nil {
					t.Error(err)
				}
				decisions <- decision
			}()
			synctest.Wait()
			if len(asked) != questions {
				t.Fatalf("%d questions, want %d", len(asked), questions)
			}
		}
		expect := func(want auth.Decision) {
			t.Helper()
			if got := <-decisions; got != want {
				t.Fatalf("decision %d, want %d", got, want)
			}
		}
		request(1)
		a.Forget()
		request(2) // which does not share the first question
		asked[0] <- auth.Allow
		expect(auth.Allow)
		request(2)
		asked[1] <- auth.NoOpinion
		expect(auth.NoOpinion)
		expect(auth.NoOpinion)
		request(2) // the answer is remembered, and not that of the first
		expect(auth.NoOpinion)
		a.Forget()
		request(3)
		asked[2] <- auth.Allow
		expect(auth.Allow)
		if reports != 2 {
			t.Errorf("%d changes were reported, want 2", reports)
		}
		if held := a.questions.answers.used.Len(); held != 1 || a.questions.answers.bytes != answerBytes {
			t.Errorf("%d answers of %d bytes", held, a.questions.answers.bytes)
		}
	})
}
