package upstream

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestReasonsOfEventsAreCompared: one that is left to chance may be missing.
func TestReasonsOfEventsAreCompared(t *testing.T) {
	var events []corev1.Event
	for _, reason := range []string{"Scheduled", "Started", "Scheduled", "FailedScheduling"} {
		events = append(events, corev1.Event{Reason: reason})
	}
	for _, test := range []struct{ reasons, missing, others []string }{
		{reasons: []string{"Scheduled", "Started", "FailedScheduling"}},
		{reasons: []string{"Scheduled", "Started", "FailedScheduling?", "Killing?"}},
		{reasons: []string{"Scheduled", "Started", "FailedScheduling", "Killing"}, missing: []string{"Killing"}},
		{reasons: []string{"Started", "FailedScheduling"}, others: []string{"Scheduled"}},
	} {
		if missing, others := compareReasons(events, test.reasons); !slices.Equal(missing, test.missing) || !slices.Equal(others, test.others) {
			t.Errorf("%q: missing %q, others %q", test.reasons, missing, others)
		}
	}
}
