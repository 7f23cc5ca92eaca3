package differential

import (
	"sync"
	"testing"
)

// TestReadBack: an object that was really created is read, under the name that the server gave it, and is
// gone after it; a difference in what a read shows is found.
func TestReadBack(t *testing.T) {
	judge := startOurs(t)
	r, err := openRecording(recorded)
	if err != nil {
		t.Fatal(err)
	}
	clear(r.Answers)
	c := &comparisonRun{ours: startOurs(t), recording: r, log: t.Output(), workers: 1, judge: sync.OnceValues(func() (*side, error) { return judge, nil })}
	if err := c.load(t.Context(), []string{"v1 ConfigMap", "rbac.authorization.k8s.io/v1 Role"}, []string{readBack}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"readback v1 ConfigMap small", `readback v1 ConfigMap small metadata.generateName="a-" metadata.name=absent`,
		`readback rbac.authorization.k8s.io/v1 Role small metadata.name="a b:é"`, `readback v1 ConfigMap small immutable=1`,
	} {
		q, err := parseRequest(r.Catalog, name)
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.one(t.Context(), q, judge)
		if err != nil || len(found) > 0 {
			t.Fatalf("%v: %v, %+v", q, err, found)
		}
		left, err := c.ours.do(t.Context(), "GET", q.kind.path(namespace)+"?fieldSelector=metadata.name%21%3Dkube-root-ca.crt", asJSON, nil)
		if err != nil || len(left.Body["items"].([]any)) > 0 {
			t.Errorf("%v: %v, left are %+v", q, err, left)
		}
		theirs := r.answer(q.String())
		if !theirs.accepted() {
			continue
		}
		if len(theirs.Steps) != 3 || len(theirs.Steps[1].Body["items"].([]any)) != 1 || len(theirs.Steps[2].Body["events"].([]any)) != 1 {
			t.Fatalf("%v: it is not read back: %+v", q, theirs.Steps)
		}
		theirs.Steps[1].Body["items"] = []any{}
		if found, err := c.one(t.Context(), q, judge); err != nil || len(found) != 1 || found[0].step != "list" {
			t.Errorf("%v: %v, %+v, want a difference in the list", q, err, found)
		}
	}
}
