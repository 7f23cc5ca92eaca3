package builtin_test

import (
	"slices"
	"testing"
)

// statusWrite is a write to the status of a manifest.
type statusWrite struct {
	kind       string
	old, edits []string
	want       []string // what is said; none: allowed
}

// checkStatusWrites checks what is said of writes.
func checkStatusWrites(t *testing.T, writes []statusWrite) {
	t.Helper()
	for _, tt := range writes {
		r, old := manifestAsIs(t, tt.kind, tt.old...)
		_, obj := manifestAsIs(t, tt.kind, tt.edits...)
		if f := r.Strategy.PrepareForStatusUpdate; f != nil {
			f(obj, old)
		}
		var got []string
		for _, err := range r.Strategy.ValidateStatus(obj, old) {
			got = append(got, err.Error())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s %v, then %v:\n%q\nnot\n%q", tt.kind, tt.old, tt.edits, got, tt.want)
		}
	}
}

// TestWorkloadStatus: what is counted is not less than nothing, nor more than all of it, and a
// counter of collisions does not go back.
func TestWorkloadStatus(t *testing.T) {
	const (
		counts    = ": Invalid value: -1: must be greater than or equal to 0"
		replicas  = ": Invalid value: 2: cannot be greater than status.replicas"
		collision = "status.collisionCount: Invalid value: "
	)
	checkStatusWrites(t, []statusWrite{
		{"deployment", nil, []string{"status={replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 1, unavailableReplicas: 2, terminatingReplicas: 1, observedGeneration: 1}"}, nil},
		{"deployment", []string{"status.collisionCount=1"}, []string{"status.collisionCount=2"}, nil},
		{"deployment", []string{"status.collisionCount=2"}, []string{"status.collisionCount=1"}, []string{collision + "1: cannot be decremented"}},
		{"deployment", []string{"status.collisionCount=2"}, nil, []string{collision + "0: cannot be decremented"}},
		{"deployment", nil, []string{"status={replicas: -1, unavailableReplicas: -1, observedGeneration: -1, terminatingReplicas: -1, collisionCount: -1}"}, []string{
			"status.observedGeneration" + counts, "status.replicas" + counts, "status.unavailableReplicas" + counts, "status.terminatingReplicas" + counts, "status.collisionCount" + counts,
			"status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas", "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
			"status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
		}},
		{"deployment", nil, []string{"status={replicas: 1, updatedReplicas: 2, readyReplicas: 2}"}, []string{"status.updatedReplicas" + replicas, "status.readyReplicas" + replicas}},
		{"deployment", nil, []string{"status={replicas: 2, readyReplicas: 1, availableReplicas: 2}"}, []string{"status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"}},
		{"replicaset", nil, []string{"status={replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 2, availableReplicas: 1, observedGeneration: 1}"}, nil},
		{"replicaset", nil, []string{"status={replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: -1, terminatingReplicas: -1}"}, []string{
			"status.availableReplicas" + counts, "status.terminatingReplicas" + counts, "status.fullyLabeledReplicas" + replicas,
		}},
		{"replicaset", nil, []string{"status={replicas: 2, readyReplicas: 1, availableReplicas: 2}"}, []string{"status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"}},
		{"statefulset", nil, []string{"status={replicas: 3, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 2, availableReplicas: 1}"}, nil},
		{"statefulset", []string{"status={replicas: 0, collisionCount: 2}"}, []string{"status={replicas: 2, readyReplicas: 1, currentReplicas: -1, updatedReplicas: 3, availableReplicas: 2}"}, []string{
			"status.currentReplicas" + counts, "status.updatedReplicas: Invalid value: 3: cannot be greater than status.replicas",
			"status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas", collision + "0: cannot be decremented",
		}},
		{"daemonset", nil, []string{"status={currentNumberScheduled: 2, numberMisscheduled: 0, desiredNumberScheduled: 1, numberReady: 3}"}, nil},
		{"daemonset", []string{"status={currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0, collisionCount: 1}"}, []string{"status={currentNumberScheduled: -1, numberMisscheduled: 0, desiredNumberScheduled: -1, numberReady: -1, numberAvailable: -1}"}, []string{
			"status.currentNumberScheduled" + counts, "status.desiredNumberScheduled" + counts, "status.numberReady" + counts, "status.numberAvailable" + counts, collision + "0: cannot be decremented",
		}},
	})
}

// TestTemplateGenerationIsNotTheStatusWriters: the annotation counts the templates of a DaemonSet,
// and writers of the status, who send it or not, do not count.
func TestTemplateGenerationIsNotTheStatusWriters(t *testing.T) {
	const annotation = "deprecated.daemonset.template.generation"
	r, old := manifest(t, "daemonset")
	_, obj := manifestAsIs(t, "daemonset", "metadata.annotations={other: kept}")
	r.Strategy.PrepareForStatusUpdate(obj, old)
	if got, want := obj.GetAnnotations()[annotation], old.GetAnnotations()[annotation]; got != want {
		t.Errorf("the annotation is %q, not %q", got, want)
	}
	if obj.GetAnnotations()["other"] != "kept" {
		t.Error("another annotation does not change with the status")
	}
}
