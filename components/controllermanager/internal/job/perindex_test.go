package job

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// indexedPod is a pod of an index that has failed before so many times.
func indexedPod(index, failures int, phase corev1.PodPhase, code int32) *corev1.Pod {
	pod := failedPod(fmt.Sprintf("i%d-%d", index, failures), "c", code)
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(epoch)
	pod.Annotations = map[string]string{
		batchv1.JobCompletionIndexAnnotation:   fmt.Sprint(index),
		batchv1.JobIndexFailureCountAnnotation: fmt.Sprint(failures),
	}
	return pod
}

func perIndexJob(completions, limit int32) *batchv1.Job {
	job := jobOf(completions, completions)
	job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	job.Spec.BackoffLimit, job.Spec.BackoffLimitPerIndex = new(int32(1<<31-1)), &limit
	return job
}

func TestFailuresOfEachIndex(t *testing.T) {
	onCode := func(action batchv1.PodFailurePolicyAction, code int32) *batchv1.PodFailurePolicy {
		return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
		}}}}
	}
	failed, good, runs := corev1.PodFailed, corev1.PodSucceeded, corev1.PodRunning
	for _, c := range []struct {
		name      string
		change    func(*batchv1.Job)
		pods      []*corev1.Pod
		failed    string // indexes
		completed string
		free      int    // pods that are counted at once
		next      []int  // indexes that get pods after the wait
		verdict   string // reason of FailureTarget
	}{
		{name: "nothing yet", next: []int{0, 1, 2}},
		{name: "one failure is replaced", pods: []*corev1.Pod{indexedPod(1, 0, failed, 1)}, next: []int{0, 1, 2}},
		{name: "the last one is not", pods: []*corev1.Pod{indexedPod(1, 1, failed, 1)}, failed: "1", free: 1, next: []int{0, 2}},
		{name: "a replaced one is counted", pods: []*corev1.Pod{indexedPod(1, 0, failed, 1), indexedPod(1, 1, runs, 0)}, free: 1, next: []int{0, 2}},
		{name: "one that succeeded at last", pods: []*corev1.Pod{indexedPod(1, 0, failed, 1), indexedPod(1, 1, good, 0)}, completed: "1", free: 2, next: []int{0, 2}},
		{name: "FailIndex", change: func(j *batchv1.Job) { j.Spec.PodFailurePolicy = onCode(batchv1.PodFailurePolicyActionFailIndex, 42) },
			pods: []*corev1.Pod{indexedPod(0, 0, failed, 42), indexedPod(2, 0, failed, 1)}, failed: "0", free: 1, next: []int{1, 2}},
		{name: "Ignore", change: func(j *batchv1.Job) { j.Spec.PodFailurePolicy = onCode(batchv1.PodFailurePolicyActionIgnore, 42) },
			pods: []*corev1.Pod{indexedPod(0, 1, failed, 42)}, next: []int{0, 1, 2}},
		{name: "Count", change: func(j *batchv1.Job) { j.Spec.PodFailurePolicy = onCode(batchv1.PodFailurePolicyActionCount, 42) },
			pods: []*corev1.Pod{indexedPod(0, 1, failed, 42)}, failed: "0", free: 1, next: []int{1, 2}},
		{name: "FailJob", change: func(j *batchv1.Job) { j.Spec.PodFailurePolicy = onCode(batchv1.PodFailurePolicyActionFailJob, 42) },
			pods: []*corev1.Pod{indexedPod(0, 0, failed, 42)}, verdict: batchv1.JobReasonPodFailurePolicy},
		{name: "too many failed", change: func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = new(int32(1)) },
			pods: []*corev1.Pod{indexedPod(0, 1, failed, 1), indexedPod(2, 1, failed, 1)}, failed: "0,2", free: 2, verdict: batchv1.JobReasonMaxFailedIndexesExceeded},
		{name: "as many as may", change: func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = new(int32(2)) },
			pods: []*corev1.Pod{indexedPod(0, 1, failed, 1), indexedPod(2, 1, failed, 1)}, failed: "0,2", free: 2, next: []int{1}},
		{name: "no other left", pods: []*corev1.Pod{indexedPod(0, 1, failed, 1), indexedPod(1, 0, good, 0), indexedPod(2, 0, good, 0)},
			failed: "0", completed: "1,2", free: 3, verdict: batchv1.JobReasonFailedIndexes},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := perIndexJob(3, 1)
			if c.change != nil {
				c.change(job)
			}
			status := &batchv1.JobStatus{}
			books := settle(job, c.pods, status)
			if *status.FailedIndexes != c.failed || status.CompletedIndexes != c.completed || len(books.free) != c.free {
				t.Errorf("failed %q, completed %q, %d counted", *status.FailedIndexes, status.CompletedIndexes, len(books.free))
			}
			judge(job, status, books, epoch)
			verdict := conditionOf(status, batchv1.JobFailureTarget)
			if (verdict != nil) != (c.verdict != "") || verdict != nil && verdict.Reason != c.verdict {
				t.Fatalf("verdict %+v, want %q", verdict, c.verdict)
			}
			if next, _ := nextIndexes(job, books, epoch.Add(time.Hour), wanted(job, status, len(books.active))-len(books.active)); !slices.Equal(next, c.next) {
				t.Errorf("next %v, want %v", next, c.next)
			}
		})
	}
}

// TestEachIndexWaitsForItself: a failure delays its own index, and no other.
func TestEachIndexWaitsForItself(t *testing.T) {
	job := perIndexJob(3, 5)
	books := settle(job, []*corev1.Pod{indexedPod(0, 0, corev1.PodFailed, 1), indexedPod(1, 2, corev1.PodFailed, 1)}, &batchv1.JobStatus{})
	for after, want := range map[time.Duration]struct {
		next []int
		wait time.Duration
	}{
		0:                {[]int{2}, 10 * time.Second},
		10 * time.Second: {[]int{0, 2}, 30 * time.Second},
		40 * time.Second: {[]int{0, 1, 2}, 0},
	} {
		if next, wait := nextIndexes(job, books, epoch.Add(after), 3); !slices.Equal(next, want.next) || wait != want.wait {
			t.Errorf("after %v: %v, and again in %v", after, next, wait)
		}
	}
	pod := &corev1.Pod{}
	setIndex(job, pod, 1)
	books.setFailureCounts(pod, 1)
	if pod.Annotations[batchv1.JobIndexFailureCountAnnotation] != "3" {
		t.Errorf("the new pod says %v", pod.Annotations)
	}
}

// TestNoFailureOfAnIndexIsLost: all pods that wait for a successor are counted
// before the job is over.
func TestNoFailureOfAnIndexIsLost(t *testing.T) {
	job := perIndexJob(2, 1)
	job.Spec.MaxFailedIndexes = new(int32(0))
	pods := []*corev1.Pod{indexedPod(0, 0, corev1.PodFailed, 1), indexedPod(1, 1, corev1.PodFailed, 1)}
	for round := range 6 {
		status := job.Status.DeepCopy()
		books := settle(job, pods, status)
		judge(job, status, books, epoch)
		conclude(status, books, epoch)
		job.Status = *status
		for _, pod := range books.free {
			pod.Finalizers = nil
		}
		if finished(&job.Status) {
			if job.Status.Failed != 2 || *job.Status.FailedIndexes != "1" {
				t.Errorf("round %d: %+v", round, job.Status)
			}
			return
		}
	}
	t.Fatalf("not over: %+v", job.Status)
}
