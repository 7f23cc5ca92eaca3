package kubelet

import (
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stage is where a pod is in its simulated life.
type stage int

const (
	stageAccept  stage = iota // just bound: report it as Pending, creating
	stageStart                // containers start: report Running
	stageReady                // runs, but shows another readiness than it has: report the true one
	stageEnd                  // containers ended: report Succeeded or Failed
	stageStop                 // deletion: report the containers as stopped, then delete
	stageNothing              // nothing to do until it changes
)

// times are what the kubelet remembers of a pod, finer than the seconds the
// API keeps. A restarted kubelet starts counting anew.
type times struct {
	accepted, started, deleting time.Time
}

// step is what to do with a pod now, or (with a wait) not before then.
type step struct {
	stage stage
	wait  time.Duration
}

// next decides a pod's next step. It is a pure function.
func (o *Options) next(pod *corev1.Pod, seen times, now time.Time) step {
	if pod.DeletionTimestamp != nil {
		return until(stageStop, seen.deleting.Add(o.stopAfter(pod)), now)
	}
	if ended(pod) {
		return step{stage: stageNothing}
	}
	if pod.Status.Phase == corev1.PodRunning {
		if readinessMoved(pod) {
			return step{stage: stageReady}
		}
		runFor, ends := o.runFor(pod)
		if !ends {
			return step{stage: stageNothing}
		}
		return until(stageEnd, seen.started.Add(runFor), now)
	}
	if pod.Status.StartTime == nil {
		return step{stage: stageAccept}
	}
	return until(stageStart, seen.accepted.Add(o.StartAfter), now)
}

func until(s stage, due, now time.Time) step {
	if wait := due.Sub(now); wait > 0 {
		return step{stage: s, wait: wait}
	}
	return step{stage: s}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// stopAfter is how long a deleted pod takes to stop: never longer than its
// grace period.
func (o *Options) stopAfter(pod *corev1.Pod) time.Duration {
	stop := o.StopAfter
	if d, err := time.ParseDuration(pod.Annotations[AnnotationStopAfter]); err == nil && d >= 0 {
		stop = d
	}
	if pod.DeletionGracePeriodSeconds != nil {
		stop = min(stop, time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second)
	}
	return stop
}

// runFor is how long the pod's containers run, if they end at all: a Job's
// pod does, others only when asked to, and none that restarts always.
func (o *Options) runFor(pod *corev1.Pod) (d time.Duration, ends bool) {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == "" {
		return 0, false
	}
	if d, err := time.ParseDuration(pod.Annotations[AnnotationRunFor]); err == nil && d >= 0 {
		return d, true
	}
	owner := metav1.GetControllerOf(pod)
	return o.RunFor, owner != nil && owner.Kind == "Job"
}

// killed is how a pod ends that is deleted while it runs: a server stops in
// good order; what should have come to an end by itself was interrupted
// (128 and SIGTERM).
func killed(pod *corev1.Pod) (code int32, phase corev1.PodPhase) {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == "" {
		return 0, corev1.PodSucceeded
	}
	return 128 + 15, corev1.PodFailed
}

// exitCode is what the pod's containers exit with: the code for its index if it is a
// pod of an Indexed Job that has one, or else the one for all pods.
func exitCode(pod *corev1.Pod) int32 {
	text := pod.Annotations[AnnotationExitCode]
	if index, ok := pod.Annotations[batchv1.JobCompletionIndexAnnotation]; ok {
		for entry := range strings.SplitSeq(pod.Annotations[AnnotationExitCodeOfIndex], ",") {
			if of, code, ok := strings.Cut(strings.TrimSpace(entry), "="); ok && of == index {
				text = code
			}
		}
	}
	code, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(code)
}
