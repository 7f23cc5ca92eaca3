package job

import (
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A job with backoffLimitPerIndex (KEP-3850) counts the failures of each index on
// its own. The counts are in no status: each pod carries those before it as
// annotations, and so the last failed pod of an index keeps its finalizer until
// its replacement exists, or until the index needs none.

func perIndex(job *batchv1.Job) bool { return indexed(job) && job.Spec.BackoffLimitPerIndex != nil }

// indexState is what is known of the failures of one index.
type indexState struct {
	count   int32       // failures so far, without ignored ones
	ignored int32       // failures that the failure policy says to ignore
	last    *corev1.Pod // the failed pod that says so; nil if a later pod does
}

func (s indexState) attempts() int32 { return s.count + s.ignored }

// annotated reads what a pod carries of the failures before it.
func annotated(pod *corev1.Pod) indexState {
	number := func(annotation string) int32 {
		n, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
		if err != nil || n < 0 {
			return 0
		}
		return int32(min(n, math.MaxInt32/4))
	}
	return indexState{count: number(batchv1.JobIndexFailureCountAnnotation), ignored: number(batchv1.JobIndexIgnoredFailureCountAnnotation)}
}

// know takes in what a pod says of its index, if no pod has said more.
func (a *account) know(index int, state indexState) {
	if a.indexes == nil {
		a.indexes = map[int]indexState{}
	}
	if known, ok := a.indexes[index]; !ok || state.attempts() > known.attempts() {
		a.indexes[index] = state
	}
}

// lookAtIndex enters a pod of a job with a limit per index. fails says that it has
// failed, and action what the failure policy says about that.
func (a *account) lookAtIndex(job *batchv1.Job, pod *corev1.Pod, index int, fails bool, action batchv1.PodFailurePolicyAction) {
	state := annotated(pod)
	if fails && tracked(pod) { // else it was counted before, or removed by us
		state.last = pod
		switch action {
		case batchv1.PodFailurePolicyActionIgnore:
			state.ignored++
		case batchv1.PodFailurePolicyActionFailIndex:
			state.count++
			a.failIndex(index)
		default:
			if state.count++; state.count > *job.Spec.BackoffLimitPerIndex {
				a.failIndex(index)
			}
		}
	}
	a.know(index, state)
}

func (a *account) failIndex(index int) {
	a.entering.failed = append(a.entering.failed, span{index, index})
}

// waitsForSuccessor reports whether a failed pod has to stay until a new pod carries
// its count. It is asked once all pods have been entered.
func (a *account) waitsForSuccessor(job *batchv1.Job, pod *corev1.Pod) bool {
	index, ok := indexOf(pod)
	if !perIndex(job) || !ok || decided(&job.Status) || job.DeletionTimestamp != nil {
		return false
	}
	state := a.indexes[index]
	return state.last != nil && state.last.UID == pod.UID && !a.completed.has(index) && !a.failed.has(index) && !a.taken.has(index)
}

// due splits off the indexes whose next pod must still wait: their wait doubles with
// each failure. It returns them with the soonest end of a wait; 0 if there is none.
func (a *account) due(now time.Time) (waiting indexSet, soonest time.Duration) {
	var spans []span
	for index, state := range a.indexes {
		if state.last == nil || state.attempts() == 0 || a.taken.has(index) {
			continue
		}
		wait := min(firstBackOff<<min(state.attempts()-1, 10), longestBackOff)
		left := endOf(state.last).Add(wait).Sub(now)
		if left <= 0 {
			continue
		}
		spans = append(spans, span{index, index})
		if soonest == 0 || left < soonest {
			soonest = left
		}
	}
	return collect(spans), soonest
}

// setFailureCounts gives a new pod the counts of its index.
func (a *account) setFailureCounts(pod *corev1.Pod, index int) {
	state := a.indexes[index]
	pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(int(state.count))
	if state.ignored > 0 {
		pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(int(state.ignored))
	}
}

// failedIndexes reads the failed indexes of a status.
func failedIndexes(job *batchv1.Job, status *batchv1.JobStatus) indexSet {
	if status.FailedIndexes == nil || job.Spec.Completions == nil {
		return nil
	}
	return parseIndexes(*status.FailedIndexes, int(*job.Spec.Completions))
}

// union returns the indexes that are in any of the sets, in memory of its own.
func union(sets ...indexSet) indexSet {
	return collect(slices.Concat(sets...))
}

// failsByIndexes returns why the job has failed for its failed indexes: too many of
// them, or no other is left; "" if it has not.
func failsByIndexes(job *batchv1.Job, a *account) (reason, message string) {
	if !perIndex(job) || job.Spec.Completions == nil {
		return "", ""
	}
	failed := a.failed.len()
	switch most := job.Spec.MaxFailedIndexes; {
	case most != nil && failed > int(*most):
		return batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes"
	case failed > 0 && failed+a.completed.len() >= int(*job.Spec.Completions):
		return batchv1.JobReasonFailedIndexes, "Job has failed indexes"
	}
	return "", ""
}
