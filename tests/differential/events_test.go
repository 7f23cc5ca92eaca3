package differential

import (
	"testing"
)

// TestRepeatedEvents: an event is left out if it shows what the one before showed, at another version,
// and the kind is one of which a server writes so.
func TestRepeatedEvents(t *testing.T) {
	const (
		added   = `{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"},"spec":1}}`
		again   = `{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"2"},"spec":1}}`
		twice   = `{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"1"},"spec":1}}`
		status  = `{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"2","managedFields":[1]},"spec":1,"status":1}}`
		changed = `{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"3"},"spec":2}}`
		gone    = `{"type":"DELETED","object":{"metadata":{"resourceVersion":"4"},"spec":2}}`
	)
	for name, test := range map[string]struct {
		kind   string
		events []string
		want   int
	}{
		"written again":        {"PersistentVolumeClaim", []string{added, again, changed, gone}, 3},
		"of another kind":      {"ConfigMap", []string{added, again, changed, gone}, 4},
		"the same event twice": {"PersistentVolumeClaim", []string{added, twice, changed, gone}, 4},
		"with a status":        {"PersistentVolumeClaim", []string{added, status, changed, gone}, 4},
		"a status":             {"CustomResourceDefinition", []string{added, status, changed, gone}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kind{groupVersionKind: groupVersionKind{Version: "v1", Kind: test.kind}}
			var events []any
			for _, event := range test.events {
				events = append(events, decode(t, event))
			}
			a := normalise(&answer{Code: 200, Body: map[string]any{"events": events}}, k, nil)
			if got := len(a.Body["events"].([]any)); got != test.want {
				t.Errorf("%d events, not %d: %s", got, test.want, literal(a.Body))
			}
		})
	}
}
