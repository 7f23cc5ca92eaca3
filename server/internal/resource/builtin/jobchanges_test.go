package builtin_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestJobUpdates: what decides which pods a job has stays. One that is suspended, and has no
// pods, may be placed elsewhere and given other resources.
func TestJobUpdates(t *testing.T) {
	const (
		spec    = "spec.template.spec"
		request = spec + ".containers.0.resources={requests: {cpu: 7}}"
		suspend = "spec.suspend=true"
		started = "status.startTime=2026-01-01T00:00:00Z"
		says    = "status.conditions=[{type: Suspended, status: 'True'}]"
		place   = spec + ".nodeSelector={zone: a}"
	)
	for _, tt := range []struct {
		old, edits []string
		want       []string // fields
	}{
		{nil, []string{place}, []string{"spec.template"}},
		{nil, []string{request}, []string{"spec.template"}},
		{[]string{suspend}, []string{place, request, "spec.template.metadata.labels.more=b"}, nil},
		{[]string{suspend}, []string{spec + ".affinity={nodeAffinity: {}}"}, nil},
		{[]string{suspend, spec + ".affinity={nodeAffinity: {}}"}, nil, nil},
		{[]string{suspend, spec + ".affinity={nodeAffinity: {}, podAffinity: {}}"}, nil, []string{spec}},
		{[]string{suspend}, []string{spec + ".affinity={podAffinity: {}}"}, []string{spec}},
		{[]string{suspend}, []string{spec + ".containers.0.image=other"}, []string{spec}},
		{[]string{suspend, started}, []string{place}, []string{"spec.template"}},
		{[]string{suspend, started, says}, []string{place, request}, nil},
		{[]string{suspend, says, "status.active=1"}, []string{place}, []string{"spec.template"}},
		{nil, []string{"spec.completions=7"}, []string{"spec.completions"}},
		{[]string{"spec.completionMode=Indexed"}, []string{"spec.completionMode=Indexed", "spec.completions=7"}, []string{"spec.completions"}},
		{[]string{"spec.completionMode=Indexed"}, []string{"spec.completionMode=Indexed", "spec.completions=7", "spec.parallelism=7"}, nil},
		{nil, []string{"spec.managedBy=a.b/c", "spec.selector={matchLabels: {a: b}}"}, []string{"spec.template.metadata.labels", "spec.selector", "spec.managedBy"}},
	} {
		r, old := manifest(t, "job", tt.old...)
		_, obj := manifest(t, "job", tt.edits...)
		obj.(*batchv1.Job).Spec.Suspend = old.(*batchv1.Job).Spec.Suspend
		if got := fields(r.Strategy.ValidateUpdate(obj, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%v, then %v: %v, not %v", tt.old, tt.edits, got, tt.want)
		}
	}
}

func fields(errs field.ErrorList) []string {
	var at []string
	for _, err := range errs {
		at = append(at, err.Field)
	}
	return at
}

// TestJobStatus: a controller of jobs, whoever wrote it, does not take back what a job has
// said, and a job ends in one way.
func TestJobStatus(t *testing.T) {
	const (
		start     = "status.startTime=2026-01-01T00:00:00Z"
		end       = "status.completionTime=2026-01-02T00:00:00Z"
		complete  = "status.conditions=[{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True'}]"
		failed    = "status.conditions=[{type: FailureTarget, status: 'True'}, {type: Failed, status: 'True'}]"
		suspended = "status.conditions=[{type: Suspended, status: 'True'}]"
		resumed   = "status.conditions=[{type: Suspended, status: 'False'}]"
	)
	indexed := []string{"spec.completionMode=Indexed", "spec.completions=9", "spec.parallelism=9", "spec.backoffLimitPerIndex=1"}
	for _, tt := range []struct {
		spec, old, edits []string
		want             string // part of what is said; empty: allowed
	}{
		{nil, nil, []string{start, "status.active=1", "status.ready=1"}, ""},
		{nil, []string{start, "status.failed=1"}, []string{start, end, complete, "status.succeeded=1", "status.failed=1"}, ""},
		{nil, []string{start, "status.active=1"}, []string{start, failed, "status.failed=1"}, ""},
		{nil, nil, []string{"status.active=-1"}, "status.active: Invalid value: -1"},
		{nil, nil, []string{"status.uncountedTerminatedPods={succeeded: [a, ''], failed: [a]}"}, `status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty; status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"`},
		{nil, []string{start}, []string{start, end, "status.conditions=[{type: Complete, status: 'True'}]"}, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"},
		{nil, []string{start}, []string{start, "status.conditions=[{type: Failed, status: 'True'}]"}, "cannot set Failed=True condition without the FailureTarget=true condition"},
		{nil, []string{start}, []string{start, complete}, "status.completionTime: Required value: completionTime is required for Complete jobs"},
		{nil, nil, []string{end, complete}, "status.startTime: Required value: startTime is required for finished job"},
		{nil, []string{start}, []string{start, end}, "cannot set completionTime when there is no Complete=True condition"},
		{nil, []string{start}, []string{start, complete, "status.completionTime=2025-01-01T00:00:00Z"}, "must be equal to or after `startTime`"},
		{nil, []string{start}, []string{start, end, complete, "status.active=1"}, "active>0 is invalid for finished job"},
		{nil, []string{start}, []string{start, end, complete, "status.terminating=1"}, "terminating>0 is invalid for finished job"},
		{nil, []string{start}, []string{start, end, complete, "status.uncountedTerminatedPods={failed: [a]}"}, "must be empty for finished job"},
		{nil, nil, []string{"status.ready=2", "status.active=1"}, "cannot set more ready pods than active"},
		{nil, []string{start, end, complete}, []string{start, end}, "cannot disable the terminal Complete=True condition"},
		{nil, []string{start, end, complete}, []string{start, complete, "status.completionTime=2026-01-03T00:00:00Z"}, "status.completionTime: Invalid value: \"2026-01-03T00:00:00Z\": field is immutable"},
		{nil, []string{"status.failed=2"}, []string{"status.failed=1"}, "cannot decrease the failed counter"},
		{nil, []string{"status.succeeded=2"}, []string{"status.succeeded=1"}, "cannot decrease the succeeded counter"},
		{indexed, []string{"status.succeeded=2"}, []string{"status.succeeded=1"}, ""},
		{nil, []string{start}, []string{"status.startTime=2026-01-03T00:00:00Z"}, "field is immutable for unsuspended job once set"},
		{[]string{"spec.suspend=true"}, []string{start}, nil, ""},
		{nil, []string{start, suspended}, []string{"status.startTime=2026-01-03T00:00:00Z", resumed}, ""},
		{nil, nil, []string{"status.completedIndexes='1'"}, "cannot set non-empty completedIndexes when non-indexed completion mode"},
		{nil, nil, []string{"status.failedIndexes='1'"}, "cannot set non-null failedIndexes when backoffLimitPerIndex is null"},
		{indexed, nil, []string{"status.completedIndexes='1,3-5'", "status.failedIndexes='2,8'"}, ""},
		{indexed, nil, []string{"status.completedIndexes='1,3-5'", "status.failedIndexes='0,4-7'"}, "failedIndexes and completedIndexes overlap at index: 4"},
		{indexed, nil, []string{"status.completedIndexes='8-9'"}, `error parsing completedIndexes: too large index: "9"`},
		{indexed, nil, []string{"status.failedIndexes='a'"}, `error parsing failedIndexes: cannot convert string to integer for index: "a"`},
	} {
		r, old := manifest(t, "job", slices.Concat(tt.spec, tt.old)...)
		_, obj := manifest(t, "job", slices.Concat(tt.spec, tt.edits)...)
		var said []string
		for _, err := range r.Strategy.ValidateStatus(obj, old) {
			said = append(said, err.Error())
		}
		if got := strings.Join(said, "; "); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v %v, then %v:\n%s\nnot\n%s", tt.spec, tt.old, tt.edits, got, tt.want)
		}
	}
}
