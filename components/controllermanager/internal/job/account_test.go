package job

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var epoch = time.Unix(1_000_000, 0)

func jobOf(completions, parallelism int32) *batchv1.Job {
	job := &batchv1.Job{}
	job.Spec.Completions, job.Spec.Parallelism = &completions, &parallelism
	return job
}

func podOf(uid string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: uid, Finalizers: []string{batchv1.JobTrackingFinalizer}, CreationTimestamp: metav1.NewTime(epoch)},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

// TestEveryPodCountsOnce kills the controller between any two of its writes:
// each subset of a round's effects is tried, and the next round must put the
// rest right.
func TestEveryPodCountsOnce(t *testing.T) {
	for lost := range 1 << 6 {
		job := jobOf(10, 10)
		pods := []*corev1.Pod{podOf("a", corev1.PodSucceeded), podOf("b", corev1.PodFailed), podOf("c", corev1.PodSucceeded)}
		for round := range 12 {
			status := job.Status.DeepCopy()
			books := settle(job, pods, status)
			if round < 6 && lost&(1<<round) != 0 {
				continue // killed before the status was written
			}
			job.Status = *status
			if len(books.free) > 0 {
				if round%2 == 0 { // killed after the first finalizer
					books.free = books.free[:1]
				}
				for _, pod := range books.free {
					pod.Finalizers = nil
				}
			}
			if round%3 == 2 { // those that may go do
				pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !tracked(p) })
			}
		}
		if s := job.Status; s.Succeeded != 2 || s.Failed != 1 || len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) != 0 {
			t.Fatalf("losses %06b: %d succeeded, %d failed, %+v", lost, s.Succeeded, s.Failed, s.UncountedTerminatedPods)
		}
	}
}

func TestUncountedPodsAreBounded(t *testing.T) {
	job := jobOf(2000, 2000)
	var pods []*corev1.Pod
	for i := range 2 * uncountedMost {
		pods = append(pods, podOf(fmt.Sprint(i), corev1.PodSucceeded))
	}
	status := &batchv1.JobStatus{}
	books := settle(job, pods, status)
	if n := len(status.UncountedTerminatedPods.Succeeded); n != uncountedMost || len(books.free) != n {
		t.Errorf("%d uids in the status, %d pods let go", n, len(books.free))
	}
}

func TestVerdicts(t *testing.T) {
	deadline, never := int64(60), int32(0)
	started := metav1.NewTime(epoch)
	for _, c := range []struct {
		name   string
		change func(*batchv1.Job)
		status batchv1.JobStatus
		after  time.Duration
		want   batchv1.JobConditionType
		reason string
	}{
		{"not yet", nil, batchv1.JobStatus{Succeeded: 1}, 0, "", ""},
		{"enough", nil, batchv1.JobStatus{Succeeded: 2}, 0, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached},
		{"enough, some uncounted", nil, batchv1.JobStatus{Succeeded: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"x"}}}, 0, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached},
		{"six failures", nil, batchv1.JobStatus{Failed: 6}, 0, "", ""},
		{"seven failures", nil, batchv1.JobStatus{Failed: 7}, 0, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded},
		{"none allowed", func(j *batchv1.Job) { j.Spec.BackoffLimit = &never }, batchv1.JobStatus{Failed: 1}, 0, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded},
		{"in time", func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &deadline }, batchv1.JobStatus{StartTime: &started}, 59 * time.Second, "", ""},
		{"too late", func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &deadline }, batchv1.JobStatus{StartTime: &started}, 60 * time.Second, batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded},
		{"a queue with one success", func(j *batchv1.Job) { j.Spec.Completions = nil }, batchv1.JobStatus{Succeeded: 1}, 0, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := jobOf(2, 2)
			if c.change != nil {
				c.change(job)
			}
			again := judge(job, &c.status, &account{}, epoch.Add(c.after))
			if c.want == "" {
				if decided(&c.status) {
					t.Fatalf("decided: %+v", c.status.Conditions)
				}
				if job.Spec.ActiveDeadlineSeconds != nil && again != time.Second {
					t.Errorf("looks again after %s", again)
				}
				return
			}
			if got := conditionOf(&c.status, c.want); got == nil || got.Reason != c.reason {
				t.Fatalf("conditions %+v, want %s by %s", c.status.Conditions, c.want, c.reason)
			}
			conclude(&c.status, &account{active: []*corev1.Pod{podOf("a", corev1.PodRunning)}}, epoch)
			if finished(&c.status) {
				t.Error("finished while a pod runs")
			}
			conclude(&c.status, &account{}, epoch)
			if !finished(&c.status) {
				t.Error("not finished when none runs")
			}
		})
	}
}

func TestBackOffDoubles(t *testing.T) {
	a := &account{}
	for i, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second} {
		if got := backOff(a, epoch); got != want {
			t.Errorf("after %d failures: %s, want %s", i, got, want)
		}
		a.failures = append(a.failures, epoch)
	}
	if got := backOff(a, epoch.Add(time.Hour)); got != 0 {
		t.Errorf("an hour later: %s", got)
	}
	a.lastGood = epoch.Add(time.Second)
	if got := backOff(a, epoch.Add(time.Second)); got != 0 {
		t.Errorf("after a success: %s", got)
	}
}

func TestHowManyPodsAreWanted(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name   string
		change func(*batchv1.Job)
		status batchv1.JobStatus
		active int
		want   int
	}{
		{"at the start", nil, batchv1.JobStatus{}, 0, 3},
		{"near the end", nil, batchv1.JobStatus{Succeeded: 4}, 0, 1},
		{"suspended", func(j *batchv1.Job) { j.Spec.Suspend = &yes }, batchv1.JobStatus{}, 3, 0},
		{"a queue", func(j *batchv1.Job) { j.Spec.Completions = nil }, batchv1.JobStatus{}, 0, 3},
		{"a queue that one found empty", func(j *batchv1.Job) { j.Spec.Completions = nil }, batchv1.JobStatus{Succeeded: 1}, 2, 2},
	} {
		job := jobOf(5, 3)
		if c.change != nil {
			c.change(job)
		}
		if got := wanted(job, &c.status, c.active); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func failedPod(uid, container string, code int32) *corev1.Pod {
	pod := podOf(uid, corev1.PodFailed)
	pod.Namespace = "default"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
	return pod
}

func TestFailurePolicy(t *testing.T) {
	in, out := batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn
	disrupted := failedPod("d", "c", 143)
	disrupted.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	onCodes := func(action batchv1.PodFailurePolicyAction, name *string, op batchv1.PodFailurePolicyOnExitCodesOperator, codes ...int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: name, Operator: op, Values: codes}}
	}
	ignoreDisruptions := batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}
	for _, c := range []struct {
		name   string
		rules  []batchv1.PodFailurePolicyRule
		pod    *corev1.Pod
		counts int
		fails  string
	}{
		{"no rule", nil, failedPod("a", "c", 3), 1, ""},
		{"fatal", []batchv1.PodFailurePolicyRule{onCodes("FailJob", nil, in, 3)}, failedPod("a", "c", 3), 1,
			"Container c for pod default/a failed with exit code 3 matching FailJob rule at index 0"},
		{"not that code", []batchv1.PodFailurePolicyRule{onCodes("FailJob", nil, in, 4)}, failedPod("a", "c", 3), 1, ""},
		{"any but that code", []batchv1.PodFailurePolicyRule{onCodes("FailJob", nil, out, 4)}, failedPod("a", "c", 3), 1,
			"Container c for pod default/a failed with exit code 3 matching FailJob rule at index 0"},
		{"not that container", []batchv1.PodFailurePolicyRule{onCodes("FailJob", new("other"), in, 3)}, failedPod("a", "c", 3), 1, ""},
		{"a container that ended well", []batchv1.PodFailurePolicyRule{onCodes("FailJob", nil, out, 4)}, failedPod("a", "c", 0), 1, ""},
		{"disruptions do not count", []batchv1.PodFailurePolicyRule{ignoreDisruptions, onCodes("FailJob", nil, in, 143)}, disrupted, 0, ""},
		{"the first rule counts", []batchv1.PodFailurePolicyRule{onCodes("Count", nil, in, 143), ignoreDisruptions}, disrupted, 1, ""},
	} {
		job := jobOf(2, 2)
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: c.rules}
		status := &batchv1.JobStatus{}
		books := settle(job, []*corev1.Pod{c.pod}, status)
		if n := len(status.UncountedTerminatedPods.Failed); n != c.counts || len(books.free) != 1 {
			t.Errorf("%s: %d failures, %d let go", c.name, n, len(books.free))
		}
		judge(job, status, books, epoch)
		verdict := conditionOf(status, batchv1.JobFailureTarget)
		if (verdict != nil) != (c.fails != "") || verdict != nil && (verdict.Message != c.fails || verdict.Reason != batchv1.JobReasonPodFailurePolicy) {
			t.Errorf("%s: %+v", c.name, verdict)
		}
	}
}

func TestSuccessPolicy(t *testing.T) {
	for _, c := range []struct {
		name      string
		indexes   *string
		count     *int32
		completed string
		ok        bool
	}{
		{"the leader is done", new("0"), nil, "0", true},
		{"others are", new("0"), nil, "1-4", false},
		{"some of some", new("0,2-4"), new(int32(2)), "1,3,4", true},
		{"too few of those", new("0,2-4"), new(int32(2)), "1,3", false},
		{"any two", nil, new(int32(2)), "1,3", true},
		{"any three", nil, new(int32(3)), "1,3", false},
	} {
		job := jobOf(5, 5)
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: c.indexes, SucceededCount: c.count}}}
		status := &batchv1.JobStatus{}
		judge(job, status, &account{completed: parseIndexes(c.completed, 5)}, epoch)
		verdict := conditionOf(status, batchv1.JobSuccessCriteriaMet)
		if (verdict != nil) != c.ok || c.ok && (verdict.Reason != batchv1.JobReasonSuccessPolicy || verdict.Message != "Matched rules at index 0") {
			t.Errorf("%s: %+v", c.name, status.Conditions)
		}
	}
}
