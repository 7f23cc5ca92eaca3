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
