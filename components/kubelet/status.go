package kubelet

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accepted is the status of a pod whose containers are being created.
func accepted(pod *corev1.Pod, nodeIP netip.Addr, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	at := metav1.NewTime(now)
	status.Phase = corev1.PodPending
	status.StartTime = &at
	status.HostIP = nodeIP.String()
	status.HostIPs = []corev1.HostIP{{IP: nodeIP.String()}}
	reason := reasonCreating
	if len(pod.Spec.InitContainers) > 0 {
		reason = reasonInitializing
	}
	status.ContainerStatuses = allCreated(pod.Spec.Containers, reason)
	status.InitContainerStatuses = allCreated(pod.Spec.InitContainers, reason)
	setConditions(&status, pod, at, map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodReadyToStartContainers: corev1.ConditionFalse,
		corev1.PodScheduled:              corev1.ConditionTrue,
		corev1.PodInitialized:            boolStatus(len(pod.Spec.InitContainers) == 0),
		corev1.ContainersReady:           corev1.ConditionFalse,
		corev1.PodReady:                  corev1.ConditionFalse,
	}, reasonNotReady)
	return status
}

func allCreated(containers []corev1.Container, reason string) (all []corev1.ContainerStatus) {
	for i := range containers {
		all = append(all, created(&containers[i], reason))
	}
	return all
}

// played is the status of a pod whose containers are where status says.
func played(pod *corev1.Pod, status corev1.PodStatus, now time.Time) corev1.PodStatus {
	alignAll(pod, &status)
	for i := range pod.Spec.InitContainers { // ready, for a kubelet, is what has succeeded
		if s := &status.InitContainerStatuses[i]; s.State.Terminated != nil {
			s.Ready = s.State.Terminated.ExitCode == 0
		}
	}
	initialized, failed := initializedBy(pod, &status)
	status.Phase = phaseOf(pod, &status, initialized, failed)
	reason := notReadyReason(status.Phase)
	over := status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed
	if over {
		endSidecars(&status, now)
		endEphemeral(&status, now)
	}
	ready := containersReady(pod, &status)
	if ready {
		reason = "ReadinessGatesNotReady"
	}
	setConditions(&status, pod, metav1.NewTime(now), map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodReadyToStartContainers: boolStatus(status.PodIP != "" && !over),
		corev1.PodScheduled:              corev1.ConditionTrue,
		corev1.PodInitialized:            boolStatus(initialized),
		corev1.ContainersReady:           boolStatus(ready),
		corev1.PodReady:                  boolStatus(ready && gatesOpen(pod)),
	}, reason)
	return status
}

// reasonNotReady is why a pod is not ready whose containers are not.
const reasonNotReady = "ContainersNotReady"

// notReadyReason is why a pod in a phase is not ready, unless its containers are.
func notReadyReason(phase corev1.PodPhase) string {
	switch phase {
	case corev1.PodSucceeded:
		return "PodCompleted"
	case corev1.PodFailed:
		return "PodFailed"
	}
	return reasonNotReady
}

// initializedBy reports whether the init containers have done their part, and whether one has
// failed for good. The status is aligned, for this and the next ones.
func initializedBy(pod *corev1.Pod, status *corev1.PodStatus) (initialized, failed bool) {
	for i := range pod.Spec.InitContainers {
		if state := &status.InitContainerStatuses[i].State; !done(&pod.Spec.InitContainers[i], state) {
			return false, state.Terminated != nil
		}
	}
	return true, false
}

// done reports whether an init container has done its part: the others need not wait for it.
func done(c *corev1.Container, state *corev1.ContainerState) bool {
	return sidecar(c) && state.Running != nil || state.Terminated != nil && state.Terminated.ExitCode == 0
}

// phaseOf is the phase that follows from the states of the containers.
func phaseOf(pod *corev1.Pod, status *corev1.PodStatus, initialized, failed bool) corev1.PodPhase {
	switch {
	case failed:
		return corev1.PodFailed
	case !initialized:
		return corev1.PodPending
	}
	ended, phase := true, corev1.PodSucceeded
	for i := range pod.Spec.Containers {
		switch s := &status.ContainerStatuses[i]; {
		case s.State.Terminated == nil:
			ended = false
			if s.State.Running == nil && s.LastTerminationState.Terminated == nil {
				return corev1.PodPending // it has never run
			}
		case s.State.Terminated.ExitCode != 0:
			phase = corev1.PodFailed
		}
	}
	if !ended {
		return corev1.PodRunning
	}
	return phase
}

// endSidecars ends what runs beside containers that have all ended.
func endSidecars(status *corev1.PodStatus, now time.Time) {
	for i := range status.InitContainerStatuses {
		if s := &status.InitContainerStatuses[i]; s.State.Running != nil {
			terminate(s, 0, now)
		}
	}
}

// endEphemeral ends the ephemeral containers of a pod that has ended.
func endEphemeral(status *corev1.PodStatus, now time.Time) {
	for i := range status.EphemeralContainerStatuses {
		if s := &status.EphemeralContainerStatuses[i]; s.State.Running != nil {
			terminate(s, interrupted, now)
			s.Started = nil
		}
	}
	lose(status.EphemeralContainerStatuses)
}

func containersReady(pod *corev1.Pod, status *corev1.PodStatus) bool {
	for i := range pod.Spec.Containers {
		if !status.ContainerStatuses[i].Ready {
			return false
		}
	}
	return true
}

// stopped is the status of a pod whose containers have been stopped, since it was deleted or active for too long.
func stopped(pod *corev1.Pod, code int32, phase corev1.PodPhase, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	alignAll(pod, &status)
	initialized, _ := initializedBy(pod, &status)
	status.Phase = phase
	for i := range pod.Spec.InitContainers {
		if s := &status.InitContainerStatuses[i]; s.State.Running != nil && !sidecar(&pod.Spec.InitContainers[i]) {
			terminate(s, interrupted, now)
		}
	}
	endSidecars(&status, now)
	endEphemeral(&status, now)
	lose(begun(status.InitContainerStatuses))
	for i := range status.ContainerStatuses {
		if s := &status.ContainerStatuses[i]; s.State.Running != nil {
			terminate(s, code, now)
		}
	}
	if initialized {
		lose(status.ContainerStatuses)
	}
	setConditions(&status, pod, metav1.NewTime(now), map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodReadyToStartContainers: corev1.ConditionFalse,
		corev1.PodScheduled:              corev1.ConditionTrue,
		corev1.PodInitialized:            boolStatus(initialized),
		corev1.ContainersReady:           corev1.ConditionFalse,
		corev1.PodReady:                  corev1.ConditionFalse,
	}, notReadyReason(phase))
	return status
}

// begun returns the init containers up to the last one that has ever run: the pod never came to the others.
func begun(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	n := len(statuses)
	for n > 0 && statuses[n-1].State.Waiting != nil && statuses[n-1].LastTerminationState.Terminated == nil {
		n--
	}
	return statuses[:n]
}

// lose says of containers that wait in a pod that has been stopped what the real kubelet says of those that it does not find.
func lose(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		if s := &statuses[i]; s.State.Terminated == nil {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
			}}
		}
	}
}

// gatesOpen is false as long as a readiness gate of the pod, which others
// open, is closed.
func gatesOpen(pod *corev1.Pod) bool {
	closed := map[corev1.PodConditionType]bool{}
	for _, gate := range pod.Spec.ReadinessGates {
		closed[gate.ConditionType] = true
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Status == corev1.ConditionTrue {
			delete(closed, c.Type)
		}
	}
	return len(closed) == 0
}

// readinessMoved reports whether a running pod shows another readiness than it
// has: a gate was opened or closed, or the node was silent for so long that
// its pods were marked not ready.
func readinessMoved(pod *corev1.Pod, status *corev1.PodStatus) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return (c.Status == corev1.ConditionTrue) != (containersReady(pod, status) && gatesOpen(pod))
		}
	}
	return false
}

// conditionOrder is the order in which kubectl describe lists them.
var conditionOrder = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
}

// setConditions sets the kubelet's conditions, for the generation of the spec that they and the status follow
// from, and leaves those of others alone. The time of a transition moves only with the status; reason is given
// for those that are false.
func setConditions(status *corev1.PodStatus, pod *corev1.Pod, at metav1.Time, wanted map[corev1.PodConditionType]corev1.ConditionStatus, reason string) {
	status.ObservedGeneration = pod.Generation
	for _, kind := range conditionOrder {
		c := corev1.PodCondition{Type: kind, Status: wanted[kind], LastTransitionTime: at, ObservedGeneration: pod.Generation}
		if c.Status == corev1.ConditionFalse {
			c.Reason, c.Message = whyNot(pod, status, kind, reason)
		}
		found := false
		for i := range status.Conditions {
			if old := &status.Conditions[i]; old.Type == kind {
				if old.Status == c.Status {
					c.LastTransitionTime = old.LastTransitionTime
				}
				*old, found = c, true
			}
		}
		if !found {
			status.Conditions = append(status.Conditions, c)
		}
	}
}

// whyNot is the reason and the message of a condition that is false. The status is aligned.
func whyNot(pod *corev1.Pod, status *corev1.PodStatus, kind corev1.PodConditionType, reason string) (string, string) {
	var names []string
	switch {
	case kind == corev1.PodReadyToStartContainers: // by the real kubelet, too, without a word
		return "", ""
	case kind == corev1.PodInitialized:
		for i := range pod.Spec.InitContainers {
			if c := &pod.Spec.InitContainers[i]; !done(c, &status.InitContainerStatuses[i].State) {
				names = append(names, c.Name)
			}
		}
		return "ContainersNotInitialized", fmt.Sprintf("containers with incomplete status: %s", names)
	case reason == reasonNotReady:
		for i := range pod.Spec.Containers {
			if !status.ContainerStatuses[i].Ready {
				names = append(names, pod.Spec.Containers[i].Name)
			}
		}
		return reason, fmt.Sprintf("containers with unready status: %s", names)
	}
	return reason, ""
}

func boolStatus(b bool) corev1.ConditionStatus {
	if b {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
