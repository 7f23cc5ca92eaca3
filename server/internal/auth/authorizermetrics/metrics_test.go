package authorizermetrics

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"

	"github.com/levelwire/levelwire/server/internal/auth"
)

var _ metrics.AuthorizerMetrics = (*Metrics)(nil)

// byVerb decides by the verb of a request.
type byVerb struct{ auth.Changes }

// Authorize implements auth.Authorizer.
func (*byVerb) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	switch a.Verb {
	case "get":
		return auth.Allow, "because", nil
	case "delete":
		return auth.Deny, "never", nil
	}
	return auth.NoOpinion, "", nil
}

// Rules implements auth.RuleLister.
func (*byVerb) Rules(context.Context, auth.User, string) auth.Rules {
	return auth.Rules{Resources: []auth.ResourceRule{{Verbs: []string{"get"}}}}
}

// TestCounted: decisions are passed on and counted, and so are rules and changes passed on.
func TestCounted(t *testing.T) {
	inner, m := &byVerb{}, New()
	a := m.Counted("RBAC", "rbac", inner)
	for _, verb := range []string{"get", "get", "list", "delete"} {
		want, wantReason, _ := inner.Authorize(t.Context(), auth.Attributes{Verb: verb})
		if decision, reason, err := a.Authorize(t.Context(), auth.Attributes{Verb: verb}); decision != want || reason != wantReason || err != nil {
			t.Errorf("%s: %d, %q, %v", verb, decision, reason, err)
		}
	}
	for decision, want := range map[string]float64{"allowed": 2, "denied": 1} {
		if n := testutil.ToFloat64(m.decisions.WithLabelValues("RBAC", "rbac", decision)); n != want {
			t.Errorf("%v decisions are %s, want %v", n, decision, want)
		}
	}
	if rules := a.(auth.RuleLister).Rules(t.Context(), auth.User{}, ""); len(rules.Resources) != 1 {
		t.Errorf("rules %+v", rules)
	}
	changes := 0
	stop := a.(auth.ChangeNotifier).OnChange(func(string) { changes++ })
	inner.Notify()
	stop()
	inner.Notify()
	if changes != 1 {
		t.Errorf("%d changes were reported", changes)
	}
	if stop := m.Counted("AlwaysAllow", "a", auth.AlwaysAllow{}).(auth.ChangeNotifier).OnChange(func(string) {}); stop != nil {
		t.Error("an authorizer whose decisions never change reports changes")
	}
}

// TestCollectors can be registered together.
func TestCollectors(t *testing.T) {
	m := New()
	m.RecordWebhookEvaluation(t.Context(), "w", "success")
	m.RecordWebhookDuration(t.Context(), "w", "success", .1)
	m.RecordWebhookFailOpen(t.Context(), "w", "timeout")
	m.RecordAuthorizationMatchConditionExclusion(t.Context(), "Webhook", "w")
	m.RecordAuthorizationMatchConditionEvaluation(t.Context(), "Webhook", "w", 1)
	m.RecordAuthorizationMatchConditionEvaluationFailure(t.Context(), "Webhook", "w")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.Collectors()...)
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 6 {
		t.Errorf("%d metrics, %v", n, err)
	}
}
