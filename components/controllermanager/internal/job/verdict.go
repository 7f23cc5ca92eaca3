package job

import (
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The first wait before a failed pod is replaced; it doubles with each
// further failure.
const (
	firstBackOff   = 10 * time.Second
	longestBackOff = 10 * time.Minute
)

const (
	reasonSuspended = "JobSuspended"
	reasonResumed   = "JobResumed"
)

func conditionOf(status *batchv1.JobStatus, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

func holds(status *batchv1.JobStatus, kind batchv1.JobConditionType) bool {
	condition := conditionOf(status, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

func finished(status *batchv1.JobStatus) bool {
	return holds(status, batchv1.JobComplete) || holds(status, batchv1.JobFailed)
}

// decided: the job has its verdict, though pods may still have to stop.
func decided(status *batchv1.JobStatus) bool {
	return finished(status) || holds(status, batchv1.JobSuccessCriteriaMet) || holds(status, batchv1.JobFailureTarget)
}

func setCondition(status *batchv1.JobStatus, kind batchv1.JobConditionType, value corev1.ConditionStatus, reason, message string, now time.Time) {
	at := metav1.NewTime(now)
	next := batchv1.JobCondition{Type: kind, Status: value, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at}
	old := conditionOf(status, kind)
	switch {
	case old == nil:
		status.Conditions = append(status.Conditions, next)
	case old.Status != value || old.Reason != reason:
		*old = next
	}
}

// judge reaches the verdict if it can be reached: it sets SuccessCriteriaMet
// or FailureTarget. It returns when the deadline will have passed.
func judge(job *batchv1.Job, status *batchv1.JobStatus, a *account, now time.Time) time.Duration {
	if decided(status) {
		return 0
	}
	succeeded, failures := totals(status)
	limit := int32(6)
	if perIndex(job) {
		limit = math.MaxInt32
	}
	if job.Spec.BackoffLimit != nil {
		limit = *job.Spec.BackoffLimit
	}
	fail := func(reason, message string) {
		setCondition(status, batchv1.JobFailureTarget, corev1.ConditionTrue, reason, message, now)
	}
	left, hasDeadline := deadline(job, status, now)
	satisfied, early := successRule(job, a.completed)
	broken, brokenBecause := failsByIndexes(job, a)
	switch {
	case a.condemned != "":
		fail(batchv1.JobReasonPodFailurePolicy, a.condemned)
		return 0
	case early:
		setCondition(status, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonSuccessPolicy, satisfied, now)
		return 0
	case enough(job, succeeded, len(a.active)):
		setCondition(status, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue,
			batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods", now)
		return 0
	case failures > limit || restartsBeyond(job, a.active, limit):
		fail(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
		return 0
	case hasDeadline && left <= 0:
		fail(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
		return 0
	}
	if broken != "" {
		fail(broken, brokenBecause)
		return 0
	}
	return left
}

// enough: as many pods have succeeded as are wanted; without a number, one
// has and the others have ended.
func enough(job *batchv1.Job, succeeded int32, active int) bool {
	if job.Spec.Completions == nil {
		return succeeded > 0 && active == 0
	}
	return succeeded >= *job.Spec.Completions
}

// restartsBeyond counts the restarts of pods that restart in their place.
func restartsBeyond(job *batchv1.Job, active []*corev1.Pod, limit int32) bool {
	if job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	var n int32
	for _, pod := range active {
		for i := range pod.Status.ContainerStatuses {
			n += pod.Status.ContainerStatuses[i].RestartCount
		}
	}
	return n > 0 && n >= limit
}

func deadline(job *batchv1.Job, status *batchv1.JobStatus, now time.Time) (left time.Duration, ok bool) {
	if job.Spec.ActiveDeadlineSeconds == nil || status.StartTime == nil || suspended(job) {
		return 0, false
	}
	return status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second).Sub(now), true
}

// conclude turns the verdict into the end once no pod runs and all are
// counted.
func conclude(status *batchv1.JobStatus, a *account, now time.Time) {
	if finished(status) || len(a.active) > 0 || a.terminating > 0 || a.uncounted {
		return
	}
	if verdict := conditionOf(status, batchv1.JobSuccessCriteriaMet); holds(status, batchv1.JobSuccessCriteriaMet) {
		setCondition(status, batchv1.JobComplete, corev1.ConditionTrue, verdict.Reason, verdict.Message, now)
		at := metav1.NewTime(now)
		status.CompletionTime = &at
	} else if verdict := conditionOf(status, batchv1.JobFailureTarget); holds(status, batchv1.JobFailureTarget) {
		setCondition(status, batchv1.JobFailed, corev1.ConditionTrue, verdict.Reason, verdict.Message, now)
	}
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// start keeps the start time and the Suspended condition.
func start(job *batchv1.Job, status *batchv1.JobStatus, now time.Time) {
	if decided(status) {
		return
	}
	at := metav1.NewTime(now)
	switch {
	case suspended(job):
		setCondition(status, batchv1.JobSuspended, corev1.ConditionTrue, reasonSuspended, "Job suspended", now)
		status.StartTime = nil
	case holds(status, batchv1.JobSuspended):
		setCondition(status, batchv1.JobSuspended, corev1.ConditionFalse, reasonResumed, "Job resumed", now)
		status.StartTime = &at
	case status.StartTime == nil:
		status.StartTime = &at
	}
}

// backOff is how long the next pod must wait after the failures since the
// last success.
func backOff(a *account, now time.Time) time.Duration {
	n := 0
	var last time.Time
	for _, at := range a.failures {
		if at.After(a.lastGood) {
			n++
			last = latest(last, at)
		}
	}
	if n == 0 {
		return 0
	}
	wait := min(firstBackOff<<min(n-1, 10), longestBackOff)
	return max(last.Add(wait).Sub(now), 0)
}

// wanted is how many pods should be active.
func wanted(job *batchv1.Job, status *batchv1.JobStatus, active int) int {
	if decided(status) || suspended(job) {
		return 0
	}
	parallelism := 1
	if job.Spec.Parallelism != nil {
		parallelism = int(*job.Spec.Parallelism)
	}
	succeeded, _ := totals(status)
	if job.Spec.Completions == nil {
		if succeeded > 0 {
			return min(active, parallelism) // the work is done: no more are begun
		}
		return parallelism
	}
	left := int(*job.Spec.Completions-succeeded) - failedIndexes(job, status).len()
	return max(min(parallelism, left), 0)
}

// expiry is when a finished job is to be deleted, if it is.
func expiry(job *batchv1.Job) (time.Time, bool) {
	if job.Spec.TTLSecondsAfterFinished == nil {
		return time.Time{}, false
	}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := conditionOf(&job.Status, kind); c != nil && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true
		}
	}
	return time.Time{}, false
}

func describe(job *batchv1.Job) string { return fmt.Sprintf("job %s/%s", job.Namespace, job.Name) }
