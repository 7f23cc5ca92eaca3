package builtin_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// TestNodeStatus: a kubelet names its features in order, and its addresses once.
func TestNodeStatus(t *testing.T) {
	checkStatusWrites(t, []statusWrite{
		{"node", nil, []string{"status.declaredFeatures=[A, B/c, Ba]", "status.addresses=[{type: InternalIP, address: 10.0.0.1}, {type: InternalIP, address: '::1'}]"}, nil},
		{"node", nil, []string{"status.capacity={example.com/a: -1}", "status.allocatable={cpu: -1, example.com/a: 500m}"}, []string{
			`status.capacity.example.com/a: Invalid value: "-1": must be greater than or equal to 0`, `status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0`,
			`status.allocatable.example.com/a: Invalid value: "500m": must be an integer`,
		}},
		{"node", nil, []string{"status.declaredFeatures=[B, B, A, a]"}, []string{
			`status.declaredFeatures[1]: Duplicate value: "B"`, `status.declaredFeatures[2]: Invalid value: "A": list must be sorted alphabetically`,
			`status.declaredFeatures[3]: Invalid value: "a": invalid feature name "a": must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`,
		}},
		{"node", nil, []string{"status.addresses=[{type: InternalIP, address: 10.0.0.1}, {type: InternalIP, address: 10.0.0.1}]"}, []string{`status.addresses[1]: Duplicate value: {"type":"InternalIP","address":"10.0.0.1"}`}},
	})
}

// TestNewNodeStatus: a node may come with its status, which is checked then.
func TestNewNodeStatus(t *testing.T) {
	r, obj := manifest(t, "node", "status.declaredFeatures=[A, A]", "status.nodeInfo={swap: {capacity: 0}}")
	var got []string
	for _, err := range r.Strategy.Validate(obj) {
		got = append(got, err.Error())
	}
	if want := []string{"metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero", `status.declaredFeatures[1]: Duplicate value: "A"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}

// TestNodeConfigIsDropped: what no kubelet says any more is stored for nodes that had it only.
func TestNodeConfigIsDropped(t *testing.T) {
	for _, tt := range []struct {
		old  string
		want bool
	}{{"status.config-", false}, {"status.config={active: {}}", true}} {
		r, old := manifestAsIs(t, "node", tt.old)
		_, obj := manifestAsIs(t, "node")
		r.Strategy.PrepareForStatusUpdate(obj, old)
		if got := obj.(*corev1.Node).Status.Config != nil; got != tt.want {
			t.Errorf("%s: there is a config: %t", tt.old, got)
		}
	}
}

// TestClaimStatus: a claim says how far storage has grown, or a resource of a driver's own.
func TestClaimStatus(t *testing.T) {
	const statuses = `: supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"`
	checkStatusWrites(t, []statusWrite{
		{"claim", nil, []string{"status={capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi, example.com/a: 1}, allocatedResourceStatuses: {storage: NodeResizePending}}"}, nil},
		{"claim", nil, []string{"status={capacity: {storage: -1}, allocatedResources: {storage: -1, cpu: 1}, allocatedResourceStatuses: {cpu: NodeResizePending}}"}, []string{
			"status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
			`status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"`,
			`status.allocatedResources: Unsupported value: "cpu": supported values: "storage"`,
			"status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
		}},
		{"claim", nil, []string{"status={allocatedResourceStatuses: {storage: Other}, allocatedResources: {storage: -500m}}"}, []string{
			`status.allocatedResourceStatuses: Unsupported value: "storage"` + statuses, "status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
		}},
	})
}
