package differential

import (
	"net/http"
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
	for _, name := range []string{
		"life v1 ConfigMap small", "formats v1 ConfigMap small", "pages v1 ConfigMap small", "resizes v1 Pod small", "limits v1 Pod small", "selections v1 ConfigMap small", "selections v1 Pod small",
		"life apps/v1 Deployment small", "formats apps/v1 Deployment small", "subresources apps/v1 Deployment small", "statuses apps/v1 Deployment withstatus",
	} {
		t.Run(name, func(t *testing.T) {
			q, err := parseRequest(r.Catalog, name)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.load(t.Context(), []string{q.kind.String()}, []string{q.verb}); err != nil {
				t.Fatal(err)
			}
			verb, o := q.verb, c.objects[key(q.kind, q.base)]
			if !applies(verb, o) {
				t.Fatal("no object is played so")
			}
			if verb == pages {
				leave(t, c.ours, o, "example-b")
			}
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
			// Later steps may differ, too: in the name of a uid that the second one has shown first.
			if err != nil || len(found) == 0 || found[0].step != theirs.Steps[1].Step {
				t.Errorf("%v: %v, %+v, want a difference in the second step first", q, err, found)
			}
			theirs.Steps = theirs.Steps[1:]
			if c.recorded(q) != nil {
				t.Errorf("%v: the answers to other steps count", q)
			}
		})
	}
}

// leave leaves an object behind, as a sequence of pages does that does not come to its end.
func leave(t *testing.T, s *side, o *object, name string) {
	t.Helper()
	left := with(o.value, "metadata", map[string]any{"name": name, "labels": map[string]any{"pages": "x"}})
	a, err := s.do(t.Context(), http.MethodPost, o.kind.path(namespace), asJSON, left)
	if err != nil || !a.accepted() {
		t.Fatal(err, a)
	}
}

// TestEncode: a body is sent in the format of its type, or not at all.
func TestEncode(t *testing.T) {
	account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "a"}}
	for contentType, begin := range map[string]string{asYAML: "apiVersion: v1\n", asProtobuf: "k8s\x00", asJSON: `{"apiVersion"`, asMergePatch: `{"apiVersion"`} {
		body, err := encode(contentType, account)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := bodyOf(body); err != nil || !strings.HasPrefix(string(text), begin) {
			t.Errorf("%s: %q, %v", contentType, text, err)
		}
	}
	_, k := widgets(t)
	if _, err := encode(asProtobuf, widget(t, k).value); err == nil || hasProtobuf(k) {
		t.Errorf("a kind that protobuf does not have was encoded: %v", err)
	}
	for _, s := range formatsOf(widget(t, k)) {
		if s.contentType == asProtobuf {
			t.Errorf("%s: of a kind that protobuf does not have", s.name)
		}
	}
}
