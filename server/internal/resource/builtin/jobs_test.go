package builtin_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

func TestJobs(t *testing.T) {
	const (
		policy   = "spec.podFailurePolicy={rules: [{action: "
		rule     = "spec.podFailurePolicy.rules[0]"
		success  = "spec.successPolicy={rules: [{"
		first    = "spec.successPolicy.rules[0]"
		restart  = "spec.template.spec.restartPolicy"
		template = "spec.template.metadata.labels"
	)
	indexed := func(edits ...string) []string {
		return append([]string{"spec.completionMode=Indexed", "spec.completions=3"}, edits...)
	}
	checkRefusals(t, []refusal{
		{"job", []string{restart + "-"}, []string{restart + `: Required value: valid values: "OnFailure", "Never"`}},
		{"job", []string{restart + "=Sometimes"}, []string{
			restart + `: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`, restart + `: Unsupported value: "Sometimes": supported values: "OnFailure", "Never"`,
		}},
		{"job", []string{"spec.completionMode=Other", "spec.backoffLimitPerIndex=1"}, []string{`spec.completionMode: Unsupported value: "Other": supported values: "NonIndexed", "Indexed"`}},
		{"job", []string{"spec.backoffLimitPerIndex=-1", "spec.maxFailedIndexes=-1"}, []string{
			"spec.backoffLimitPerIndex: Invalid value: -1: must be greater than or equal to 0", "spec.maxFailedIndexes: Invalid value: -1: must be greater than or equal to 0",
			"spec.backoffLimitPerIndex: Invalid value: -1: requires indexed completion mode", "spec.maxFailedIndexes: Invalid value: -1: requires indexed completion mode",
		}},
		{"job", []string{"spec.managedBy=a.b/" + strings.Repeat("c", 60)}, []string{"spec.managedBy: Too long: may not be more than 63 bytes"}},
		{"job", []string{"spec.podReplacementPolicy=''"}, []string{`spec.podReplacementPolicy: Unsupported value: "": supported values: "Failed", "TerminatingOrFailed"`}},
		{"job", []string{policy + "Ignore, onPodConditions: [{type: A}]}]}", "spec.podReplacementPolicy=TerminatingOrFailed"},
			[]string{`spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"`}},
		{"job", []string{policy + "''}]}"}, []string{
			rule + `.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`, rule + ": Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
		}},
		{"job", []string{policy + "Ignore, onExitCodes: {operator: '', values: []}, onPodConditions: [{type: A, status: Maybe}]}]}"}, []string{
			rule + `.onExitCodes.operator: Required value: valid values: ["In" "NotIn"]`, rule + `.onExitCodes.values: Invalid value: []: at least one value is required`,
			rule + `.onPodConditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"`,
			rule + ": Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
		}},
		{"job", []string{"spec.successPolicy={}"}, []string{`spec.successPolicy: Invalid value: {"rules":null}: requires indexed completion mode`}},
		{"job", indexed(success + "}]}"), []string{first + ": Required value: at least one of succeededCount or succeededIndexes must be specified"}},
		{"job", indexed(success + "succeededIndexes: '', succeededCount: 1}]}"),
			[]string{first + ".succeededCount: Invalid value: 1: must be less than or equal to 0 (the number of indexes in the specified succeededIndexes field)"}},
		{"job", indexed(success + "succeededIndexes: '0-1-2', succeededCount: 4}]}"), []string{
			first + `.succeededIndexes: Invalid value: "0-1-2": error parsing succeededIndexes: the fragment "0-1-2" violates the requirement that an index interval can have at most two parts separated by '-'`,
			first + ".succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of specified completions)",
			first + ".succeededCount: Invalid value: 4: must be less than or equal to 0 (the number of indexes in the specified succeededIndexes field)",
		}},
		{"job", indexed(success + "succeededIndexes: '2,1'}]}"), []string{first + `.succeededIndexes: Invalid value: "2,1": error parsing succeededIndexes: non-increasing order, previous: 2, current: 1`}},
		{"job", indexed(success + "succeededIndexes: '0-3'}]}"), []string{first + `.succeededIndexes: Invalid value: "0-3": error parsing succeededIndexes: too large index: "3"`}},
		{"job", indexed(success + "succeededIndexes: 'a'}]}"), []string{first + `.succeededIndexes: Invalid value: "a": error parsing succeededIndexes: cannot convert string to integer for index: "a"`}},
		{"job", indexed("metadata.name=" + strings.Repeat("a", 62)), []string{
			`metadata.name: Invalid value: "` + strings.Repeat("a", 62) + `": will not able to create pod with invalid DNS label: ` + strings.Repeat("a", 62) + "-2",
		}},
		{"job", indexed("spec.completions=100001", "spec.parallelism=100001", "spec.backoffLimitPerIndex=1", "spec.maxFailedIndexes=100002"), []string{
			"spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed",
			"spec.maxFailedIndexes: Invalid value: 100002: must be less than or equal to completions", "spec.maxFailedIndexes: Invalid value: 100002: must be less than or equal to 100000",
			"spec.parallelism: Invalid value: 100001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index",
			"spec.maxFailedIndexes: Invalid value: 100002: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index",
		}},
		{"job", []string{template + "={job-name: other}"}, []string{
			template + `[job-name]: Invalid value: {"batch.kubernetes.io/controller-uid":"","batch.kubernetes.io/job-name":"once","controller-uid":"","job-name":"other"}: must be 'once'`,
		}},
		{"job", []string{"spec.selector={matchLabels: {app: once}}"}, []string{
			`spec.selector: Invalid value: {"matchLabels":{"app":"once","batch.kubernetes.io/controller-uid":""}}: ` + "`selector` not auto-generated",
		}},
	})
}

func TestCronJobs(t *testing.T) {
	const template = "spec.jobTemplate.spec"
	checkRefusals(t, []refusal{
		{"cronjob", []string{"spec.schedule=", template + ".template.spec.restartPolicy=Always", "spec.failedJobsHistoryLimit=-1"}, []string{
			template + `.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`,
			"spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
			"spec.schedule: Required value",
		}},
		{"cronjob", []string{"spec.concurrencyPolicy=Other"}, []string{`spec.concurrencyPolicy: Unsupported value: "Other": supported values: "Allow", "Forbid", "Replace"`}},
		{"cronjob", []string{"spec.timeZone=''"}, []string{`spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string`}},
		{"cronjob", []string{"spec.timeZone=../etc"}, []string{`spec.timeZone: Invalid value: "../etc": unknown time zone ../etc`}},
		{"cronjob", []string{"spec.timeZone=local"}, []string{
			`spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones`, `spec.timeZone: Invalid value: "local": unknown time zone local`,
		}},
		{"cronjob", []string{template + ".selector={matchLabels: {a: b}}", template + ".manualSelector=true"}, []string{
			template + `.selector: Invalid value: {"matchLabels":{"a":"b"}}: ` + "`selector` will be auto-generated",
			template + `.manualSelector: Unsupported value: true: supported values: "nil", "false"`,
		}},
	})
	_, obj := manifest(t, "cronjob", template+".podFailurePolicy={rules: [{action: Ignore, onPodConditions: [{type: A}]}]}")
	if got := obj.(*batchv1.CronJob).Spec.JobTemplate.Spec.PodFailurePolicy.Rules[0].OnPodConditions[0].Status; got != "True" {
		t.Errorf("the status of a condition is %q", got)
	}
}

// TestOldCronJobs: what a new one may not have stays in an old one.
func TestOldCronJobs(t *testing.T) {
	long := "metadata.name=" + strings.Repeat("a", 53)
	for _, tt := range []struct {
		old, edits []string
		want       []string
	}{
		{[]string{long}, []string{long}, nil},
		{[]string{"spec.schedule='TZ=UTC * * * * *'"}, []string{"spec.schedule='TZ=UTC 1 * * * *'"}, nil},
		{[]string{"spec.schedule='TZ=UTC * * * * *'"}, []string{"spec.schedule='TZ=UTC * * * * *'", "spec.timeZone=UTC"}, []string{"Invalid spec.schedule"}},
		{nil, []string{"spec.schedule='TZ=UTC * * * * *'"}, []string{"Invalid spec.schedule"}},
		{[]string{"spec.timeZone=Mars/Olympus"}, []string{"spec.timeZone=Mars/Olympus", "spec.suspend=true"}, nil},
		{nil, []string{"spec.timeZone=Mars/Olympus"}, []string{"Invalid spec.timeZone"}},
	} {
		r, old := manifest(t, "cronjob", tt.old...)
		_, obj := manifest(t, "cronjob", tt.edits...)
		if got := complaints(r.Strategy.ValidateUpdate(obj, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, not %v", tt.edits, got, tt.want)
		}
	}
}
