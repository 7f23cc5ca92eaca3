package differential

import (
	"strings"
	"sync"
	"testing"
)

// TestSequences plays every sequence on two servers of ours, which agree, and finds what a server says
// otherwise in one step.
func TestSequences(t *testing.T) {
	judge := startOurs(t)
	r, err := openRecording(recorded)
	if err != nil {
		t.Fatal(err)
	}
	clear(r.Answers)
	c := &comparisonRun{ours: startOurs(t), recording: r, log: t.Output(), workers: 1, judge: sync.OnceValues(func() (*side, error) { return judge, nil })}
	for _, kind := range []string{"v1 ConfigMap", "apps/v1 Deployment"} {
		if err := c.load(t.Context(), []string{kind}, nil); err != nil {
			t.Fatal(err)
		}
		o := c.objects[key(r.Catalog.find(strings.Fields(kind)[0], strings.Fields(kind)[1]), small)]
		for _, verb := range []string{life, formatsVerb, subresources} {
			q := &request{verb: verb, kind: o.kind, base: small}
			found, err := c.one(t.Context(), q, judge)
			if err != nil || len(found) > 0 {
				t.Fatalf("%v: %v, %+v", q, err, found)
			}
			theirs := r.answer(q.String())
			if got := theirs.Steps[len(theirs.Steps)-1]; len(theirs.Steps) < 2 || verb == life && len(got.Body["events"].([]any)) < 10 {
				t.Errorf("%v ended with %+v", q, got)
			}
			theirs.Steps[1].Code, theirs.Steps[1].Body = 418, nil
			found, err = c.one(t.Context(), q, judge)
			if err != nil || len(found) != 1 || found[0].step != theirs.Steps[1].Step {
				t.Errorf("%v: %v, %+v, want a difference in the second step", q, err, found)
			}
			theirs.Steps = theirs.Steps[1:]
			if c.recorded(q) != nil {
				t.Errorf("%v: the answers to other steps count", q)
			}
		}
	}
}
