package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// times are what the kubelet remembers of a pod, finer than the seconds the
// API keeps. A restarted kubelet starts counting anew.
type times struct {
	accepted, deleting time.Time
	// containers has those whose state ends after a while.
	containers []containerTime
}

// containerTime is when a container's state was first seen.
type containerTime struct {
	name     string
	restarts int32
	state    string // "running", or the reason why it waits
	since    time.Time
}

// stateOf names the state of a container.
func stateOf(s *corev1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return "running"
	case s.State.Waiting != nil:
		return s.State.Waiting.Reason
	default:
		return ""
	}
}

// since is when the container's state was first seen. If that is not remembered, it is what
// the status says; zero: it does not say.
func (t *times) since(s *corev1.ContainerStatus) time.Time {
	state := stateOf(s)
	for _, c := range t.containers {
		if c.name == s.Name && c.restarts == s.RestartCount && c.state == state {
			return c.since
		}
	}
	if s.State.Running != nil {
		return s.State.Running.StartedAt.Time
	}
	return time.Time{}
}

// remember notes when each stage of the pod's life was first seen.
func (t *times) remember(o *Options, pod *corev1.Pod, now time.Time) {
	setOnce := func(t *time.Time, when bool) {
		if when && t.IsZero() {
			*t = now
		}
	}
	setOnce(&t.accepted, pod.Status.StartTime != nil)
	setOnce(&t.deleting, pod.DeletionTimestamp != nil)
	var containers []containerTime
	note := func(specs []corev1.Container, statuses []corev1.ContainerStatus, init bool) {
		for i := range statuses {
			s := &statuses[i]
			at := slices.IndexFunc(specs, func(c corev1.Container) bool { return c.Name == s.Name })
			if at < 0 || s.State.Running != nil && o.programOf(pod, &specs[at], init).runs < 0 ||
				s.State.Running == nil && !waits(s, reasonCrashLoop) && !waits(s, reasonPullError) {
				continue
			}
			seen := containerTime{name: s.Name, restarts: s.RestartCount, state: stateOf(s), since: now}
			if i := slices.IndexFunc(t.containers, seen.same); i >= 0 {
				seen = t.containers[i]
			}
			containers = append(containers, seen)
		}
	}
	note(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	note(pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	t.containers = containers
}

// same reports whether two are of the same state.
func (c containerTime) same(other containerTime) bool {
	other.since = c.since
	return c == other
}
