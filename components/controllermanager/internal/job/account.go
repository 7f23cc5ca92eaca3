package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// uncountedMost bounds the uids in a status; the rest waits its turn.
const uncountedMost = 500

// account is what a job's pods come to.
type account struct {
	active      []*corev1.Pod
	ready       int32
	terminating int32
	completed   indexSet // of an Indexed job, counted or about to be
	taken       indexSet // indexes that active pods, or ones that still stop, work on
	entering    entering
	// free are the pods whose finalizer may go once the status is written.
	free []*corev1.Pod
	// uncounted says that ended pods are still to become numbers, or to be let
	// go: a job that is over holds no pod back.
	uncounted bool
	failures  []time.Time // when pods failed that have not been deleted
	lastGood  time.Time   // when the last of them succeeded
	// condemned says which failure ends the job at once, by its policy; "" is
	// none.
	condemned string

	// Of a job with a limit per index: its failed indexes, counted or about to be,
	// what is known of the failures of each index, and the failed pods, of which
	// waits have to stay until a new pod carries their count.
	failed  indexSet
	indexes map[int]indexState
	broken  []*corev1.Pod
	waits   int
}

func tracked(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// failed: a pod that is deleted before it succeeded counts as failed, unless
// the job waits for what becomes of it.
func failed(job *batchv1.Job, pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed {
		return true
	}
	patient := job.Spec.PodReplacementPolicy != nil && *job.Spec.PodReplacementPolicy == batchv1.Failed
	return pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded && !patient
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// entering are the indexes of pods that have been looked at, until all have.
type entering struct{ completed, taken, failed []span }

// enter adds them to the sets.
func (a *account) enter() {
	a.completed = collect(append(a.entering.completed, a.completed...))
	a.taken = collect(append(a.entering.taken, a.taken...))
	a.failed = collect(append(a.entering.failed, a.failed...))
	a.entering = entering{}
}

// settle does the bookkeeping on status, which is job's status and is changed:
// uids whose pods have lost their finalizer become numbers, and ended pods
// that have one become uids.
func settle(job *batchv1.Job, owned []*corev1.Pod, status *batchv1.JobStatus) *account {
	limit := 0
	if job.Spec.Completions != nil {
		limit = int(*job.Spec.Completions)
	}
	a := &account{completed: parseIndexes(status.CompletedIndexes, limit), failed: failedIndexes(job, status)}
	if status.UncountedTerminatedPods == nil {
		status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	waiting := map[types.UID]bool{}
	for _, pod := range owned {
		if tracked(pod) {
			waiting[pod.UID] = true
		}
	}
	books := status.UncountedTerminatedPods
	books.Succeeded = count(books.Succeeded, waiting, &status.Succeeded)
	books.Failed = count(books.Failed, waiting, &status.Failed)
	for _, pod := range owned {
		a.look(job, pod, books, limit)
	}
	a.enter()
	a.bookBroken(job, books)
	if indexed(job) {
		status.CompletedIndexes = a.completed.String()
		status.Succeeded = int32(a.completed.len())
	}
	if perIndex(job) {
		status.FailedIndexes = new(a.failed.String())
	}
	a.uncounted = len(books.Succeeded)+len(books.Failed)+len(a.free)+a.waits > 0
	ready := a.ready
	terminating := a.terminating
	status.Active, status.Ready, status.Terminating = int32(len(a.active)), &ready, &terminating
	return a
}

// count turns the uids of pods that wait no longer into a number and returns
// those that do.
func count(uids []types.UID, waiting map[types.UID]bool, n *int32) []types.UID {
	var kept []types.UID
	for _, uid := range uids {
		if waiting[uid] {
			kept = append(kept, uid)
		} else {
			*n++
		}
	}
	return kept
}

// look enters one pod.
func (a *account) look(job *batchv1.Job, pod *corev1.Pod, books *batchv1.UncountedTerminatedPods, limit int) {
	index, hasIndex := indexOf(pod)
	if indexed(job) && (!hasIndex || index >= limit) {
		if ended(pod) || pod.DeletionTimestamp != nil {
			a.release(pod)
		} else {
			a.active = append(a.active, pod) // surplus: no index is its own
		}
		return
	}
	if pod.DeletionTimestamp != nil && !ended(pod) {
		a.terminating++
	}
	if perIndex(job) && !failed(job, pod) {
		a.lookAtIndex(job, pod, index, false, "")
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		a.lastGood = latest(a.lastGood, endOf(pod))
		a.succeed(job, pod, books, index)
	case failed(job, pod):
		action, what := failureRule(job, pod)
		if perIndex(job) {
			a.lookAtIndex(job, pod, index, true, action)
			a.broken = append(a.broken, pod)
		} else if action == batchv1.PodFailurePolicyActionIgnore {
			a.release(pod) // it is replaced as if it had never been
			return
		}
		if action == batchv1.PodFailurePolicyActionFailJob && a.condemned == "" {
			a.condemned = what
		}
		if tracked(pod) || ended(pod) { // else it was removed by us
			a.failures = append(a.failures, endOf(pod))
		}
		if !perIndex(job) {
			a.book(pod, &books.Failed, len(books.Succeeded)+len(books.Failed))
		}
	case pod.DeletionTimestamp != nil: // its successor waits until it has ended
		a.take(job, index)
	default:
		a.active = append(a.active, pod)
		a.take(job, index)
		if pods.Ready(pod) {
			a.ready++
		}
	}
}

// bookBroken enters the failed pods of a job with a limit per index, those left out
// that must stay.
func (a *account) bookBroken(job *batchv1.Job, books *batchv1.UncountedTerminatedPods) {
	for _, pod := range a.broken {
		if !tracked(pod) {
			continue
		}
		action, _ := failureRule(job, pod)
		switch {
		case a.waitsForSuccessor(job, pod):
			a.waits++
		case action == batchv1.PodFailurePolicyActionIgnore:
			a.release(pod)
		default:
			a.book(pod, &books.Failed, len(books.Succeeded)+len(books.Failed))
		}
	}
}

func (a *account) take(job *batchv1.Job, index int) {
	if indexed(job) {
		a.entering.taken = append(a.entering.taken, span{index, index})
	}
}

func (a *account) succeed(job *batchv1.Job, pod *corev1.Pod, books *batchv1.UncountedTerminatedPods, index int) {
	if !indexed(job) {
		a.book(pod, &books.Succeeded, len(books.Succeeded)+len(books.Failed))
		return
	}
	// The index itself is the count: entering it twice changes nothing. A pod
	// without the finalizer was let go on purpose or counted long ago.
	if tracked(pod) {
		a.entering.completed = append(a.entering.completed, span{index, index})
		a.release(pod)
	}
}

// book writes the uid of an ended pod down, unless it is there already or has
// been counted.
func (a *account) book(pod *corev1.Pod, uids *[]types.UID, booked int) {
	if !tracked(pod) {
		return
	}
	if !slices.Contains(*uids, pod.UID) {
		if booked >= uncountedMost {
			return
		}
		*uids = append(*uids, pod.UID)
	}
	a.release(pod)
}

func (a *account) release(pod *corev1.Pod) {
	if tracked(pod) {
		a.free = append(a.free, pod)
	}
}

// endOf is when the pod's last container ended, or else when it was deleted
// or created.
func endOf(pod *corev1.Pod) time.Time {
	var end time.Time
	for i := range pod.Status.ContainerStatuses {
		if t := pod.Status.ContainerStatuses[i].State.Terminated; t != nil {
			end = latest(end, t.FinishedAt.Time)
		}
	}
	switch {
	case !end.IsZero():
		return end
	case pod.DeletionTimestamp != nil:
		return pod.DeletionTimestamp.Time
	}
	return pod.CreationTimestamp.Time
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// totals are the ended pods, counted or not.
func totals(status *batchv1.JobStatus) (succeeded, failed int32) {
	succeeded, failed = status.Succeeded, status.Failed
	if books := status.UncountedTerminatedPods; books != nil {
		succeeded += int32(len(books.Succeeded))
		failed += int32(len(books.Failed))
	}
	return succeeded, failed
}
