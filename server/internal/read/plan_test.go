package read

import (
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/storage"
)

// TestListsTellTheirPlan: the span of a list says by which way its objects are found.
func TestListsTellTheirPlan(t *testing.T) {
	f := newFixture(t)
	f.seed()
	in := func(namespace, name string) Scope { return Scope{Resource: f.pods, Namespace: namespace, Name: name} }
	for _, test := range []struct {
		scope Scope
		opts  metav1.ListOptions
		plan  string
		most  int // candidates
	}{
		{in("", ""), metav1.ListOptions{}, "range", 3},
		{in("a", ""), metav1.ListOptions{}, "range", 2},
		{in("a", ""), metav1.ListOptions{FieldSelector: "metadata.name=one"}, "key", 1},
		{in("", ""), metav1.ListOptions{FieldSelector: "metadata.name=one"}, "filters", 3},
		{in("", ""), metav1.ListOptions{LabelSelector: "app in (x,y)"}, "filters", 3},
		{in("", ""), metav1.ListOptions{FieldSelector: "spec.nodeName=n1,status.phase!=Failed"}, "filters", 3},
		{in("", ""), metav1.ListOptions{FieldSelector: "spec.nodeName!=n1"}, "scan", 3},
		{in("b", ""), metav1.ListOptions{LabelSelector: "app notin (x)"}, "scan", 1},
	} {
		plan, candidates := f.planOf(t, test.scope, test.opts)
		if plan != test.plan || candidates < 1 || candidates > test.most {
			t.Errorf("%s, %v: the plan is %s with %d candidates, want %s with at most %d", test.scope.Namespace, test.opts, plan, candidates, test.plan, test.most)
		}
	}
}

// TestListsFromTheStoreTellThat: the cache has no plan for a version that is gone from it.
func TestListsFromTheStoreTellThat(t *testing.T) {
	var first storage.Revision
	f := newFixture(t, func(s *setup) {
		s.cache.HistoryEvents = 4 // fewer than have happened since
		s.history = func(f *fixture) {
			first, _, _ = f.seed()
			f.churn()
		}
	})
	if plan, _ := f.planOf(t, f.allPods(), at(first)); plan != fromStore {
		t.Errorf("the plan of a list before the cache's time is %q, want %s", plan, fromStore)
	}
}

// planOf lists under a span that is recorded, and returns what the span says.
func (f *fixture) planOf(t *testing.T, scope Scope, opts metav1.ListOptions) (plan string, candidates int) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), fmt.Sprint(opts))
	_, err := f.reader.List(ctx, scope, &opts)
	must(t, err)
	span.End()
	for _, a := range recorder.Ended()[0].Attributes() {
		switch a.Key {
		case "levelwire.list.plan":
			plan = a.Value.AsString()
		case "levelwire.list.candidates":
			candidates = int(a.Value.AsInt64())
		}
	}
	return plan, candidates
}
