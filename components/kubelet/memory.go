package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// times are what the kubelet remembers of a pod, finer than the seconds the
// API keeps. A restarted kubelet starts counting anew.
type times struct {
	accepted, deleting time.Time
	// containers is when the states were first seen that end after a while. It is replaced, and not changed:
	// copies of times share it.
	containers map[containerState]time.Time
	// refused is why the node does not give the pod what it asks for now. It is looked up for each step.
	refused *refusal
}

// containerState is a state of a container.
type containerState struct {
	name     string
	restarts int32
	state    string // "running", or the reason why it waits
}

// stateOf is the state of a container.
func stateOf(s *corev1.ContainerStatus) containerState {
	state := containerState{name: s.Name, restarts: s.RestartCount}
	switch {
	case s.State.Running != nil:
		state.state = "running"
	case s.State.Waiting != nil:
		state.state = s.State.Waiting.Reason
	}
	return state
}

// since is when the container's state was first seen. If that is not remembered, it is what
// the status says; zero: it does not say.
func (t *times) since(s *corev1.ContainerStatus) time.Time {
	if since, ok := t.containers[stateOf(s)]; ok {
		return since
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
	var containers map[containerState]time.Time
	programs := o.programsOf(pod)
	note := func(specs []corev1.Container, statuses []corev1.ContainerStatus, as role) {
		statuses = aligned(specs, statuses)
		for i := range specs {
			s := &statuses[i]
			if s.State.Running != nil && programs.of(&specs[i], as).runs < 0 ||
				s.State.Running == nil && !waits(s, reasonCrashLoop) && !waits(s, reasonPullError) {
				continue
			}
			state, since := stateOf(s), now
			if before, ok := t.containers[state]; ok {
				since = before
			}
			if containers == nil {
				containers = map[containerState]time.Time{}
			}
			containers[state] = since
		}
	}
	note(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, roleInit)
	note(pod.Spec.Containers, pod.Status.ContainerStatuses, roleMain)
	note(ephemeralOf(pod), pod.Status.EphemeralContainerStatuses, roleEphemeral)
	t.containers = containers
}
