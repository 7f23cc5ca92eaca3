package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// stage is where a pod is in its simulated life.
type stage int

const (
	stageAccept  stage = iota // just bound: report it as Pending, creating, or as failed if the node does not admit it
	stageMove                 // containers start, end or wait: report that
	stageShow                 // its status is behind: report the true readiness, and the generation that was seen
	stageExpire               // it has been active for as long as it may: end it as failed
	stageStop                 // deletion: report the containers as stopped, then delete
	stageNothing              // nothing to do until it changes
)

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
	if pod.Status.StartTime == nil {
		return step{stage: stageAccept}
	}
	expires, limited := expiry(pod)
	if limited && !now.Before(expires) {
		return step{stage: stageExpire}
	}
	p := o.play(pod, seen, now)
	switch {
	case p.moved:
		return step{stage: stageMove}
	case readinessMoved(pod, p.status), pod.Status.ObservedGeneration < pod.Generation:
		return step{stage: stageShow}
	case limited && (p.due.IsZero() || expires.Before(p.due)):
		return until(stageExpire, expires, now)
	case !p.due.IsZero():
		return until(stageMove, p.due, now)
	default:
		return step{stage: stageNothing}
	}
}

// play moves a pod's containers to where they are at now.
func (o *Options) play(pod *corev1.Pod, seen times, now time.Time) *play {
	p := &play{opts: o, pod: pod, programs: o.programsOf(pod), seen: seen, now: now, status: pod.Status.DeepCopy()}
	alignAll(pod, p.status)
	p.resize()
	p.run()
	return p
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

// interrupted is what a container exits with that SIGTERM has ended.
const interrupted = 128 + 15

// killed is how a pod ends that is deleted while it runs: a server stops in
// good order; what should have come to an end by itself was interrupted.
func killed(pod *corev1.Pod) (code int32, phase corev1.PodPhase) {
	if alwaysRestarts(pod) {
		return 0, corev1.PodSucceeded
	}
	return interrupted, corev1.PodFailed
}
