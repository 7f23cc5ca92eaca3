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
	waiting := func(string) corev1.ContainerState {
		reason := "ContainerCreating"
		if len(pod.Spec.InitContainers) > 0 {
			reason = "PodInitializing"
		}
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	status.ContainerStatuses = containers(pod, pod.Spec.Containers, false, waiting)
	status.InitContainerStatuses = containers(pod, pod.Spec.InitContainers, false, waiting)
	setConditions(&status, pod, at, map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled:    corev1.ConditionTrue,
		corev1.PodInitialized:  boolStatus(len(pod.Spec.InitContainers) == 0),
		corev1.ContainersReady: corev1.ConditionFalse,
		corev1.PodReady:        corev1.ConditionFalse,
	}, "ContainersNotReady")
	return status
}

// running is the status of a pod all of whose containers have started.
func running(pod *corev1.Pod, ip netip.Addr, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	at := metav1.NewTime(now)
	status.Phase = corev1.PodRunning
	status.PodIP = ip.String()
	status.PodIPs = []corev1.PodIP{{IP: ip.String()}}
	status.ContainerStatuses = containers(pod, pod.Spec.Containers, true, func(string) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	})
	status.InitContainerStatuses = containers(pod, pod.Spec.InitContainers, true, func(string) corev1.ContainerState {
		return terminated(0, at, at)
	})
	setConditions(&status, pod, at, map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled:    corev1.ConditionTrue,
		corev1.PodInitialized:  corev1.ConditionTrue,
		corev1.ContainersReady: corev1.ConditionTrue,
		corev1.PodReady:        gatesOpen(pod),
	}, "ReadinessGatesNotReady")
	return status
}

// readied is the status of a running pod that shows another readiness than it
// has.
func readied(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	setConditions(&status, pod, metav1.NewTime(now), map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled:    corev1.ConditionTrue,
		corev1.PodInitialized:  corev1.ConditionTrue,
		corev1.ContainersReady: corev1.ConditionTrue,
		corev1.PodReady:        gatesOpen(pod),
	}, "ReadinessGatesNotReady")
	return status
}

// finished is the status of a pod whose containers have ended, by themselves
// or because it was deleted.
func finished(pod *corev1.Pod, code int32, phase corev1.PodPhase, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	at := metav1.NewTime(now)
	status.Phase = phase
	for i := range status.ContainerStatuses {
		container := &status.ContainerStatuses[i]
		started := at
		if container.State.Running != nil {
			started = container.State.Running.StartedAt
		}
		container.State = terminated(code, started, at)
		container.Ready = false
		container.Started = new(bool)
	}
	reason := "PodCompleted"
	if code != 0 {
		reason = "PodFailed"
	}
	setConditions(&status, pod, at, map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled:    corev1.ConditionTrue,
		corev1.PodInitialized:  corev1.ConditionTrue,
		corev1.ContainersReady: corev1.ConditionFalse,
		corev1.PodReady:        corev1.ConditionFalse,
	}, reason)
	return status
}

func terminated(code int32, started, ended metav1.Time) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: ended,
	}}
}

func containers(pod *corev1.Pod, specs []corev1.Container, started bool, state func(string) corev1.ContainerState) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i := range specs {
		spec := &specs[i]
		s := corev1.ContainerStatus{
			Name: spec.Name, Image: spec.Image, State: state(spec.Name), Ready: started, Started: &started,
		}
		if started {
			s.ContainerID = fmt.Sprintf("simulated://%s/%s", pod.UID, spec.Name)
			s.ImageID = spec.Image
		}
		statuses = append(statuses, s)
	}
	return statuses
}

// gatesOpen is false as long as a readiness gate of the pod, which others
// open, is closed.
func gatesOpen(pod *corev1.Pod) corev1.ConditionStatus {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, c := range pod.Status.Conditions {
			open = open || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !open {
			return corev1.ConditionFalse
		}
	}
	return corev1.ConditionTrue
}

// readinessMoved reports whether a running pod shows another readiness than it
// has: a gate was opened or closed, or the node was silent for so long that
// its pods were marked not ready.
func readinessMoved(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status != gatesOpen(pod)
		}
	}
	return false
}

// conditionOrder is the order in which kubectl describe lists them.
var conditionOrder = []corev1.PodConditionType{
	corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
}

// setConditions sets the kubelet's conditions and leaves those of others
// alone. The time of a transition moves only with the status; reason is given
// for those that are false.
func setConditions(status *corev1.PodStatus, pod *corev1.Pod, at metav1.Time, wanted map[corev1.PodConditionType]corev1.ConditionStatus, reason string) {
	for _, kind := range conditionOrder {
		c := corev1.PodCondition{Type: kind, Status: wanted[kind], LastTransitionTime: at, ObservedGeneration: pod.Generation}
		if c.Status == corev1.ConditionFalse {
			c.Reason = reason
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

func boolStatus(b bool) corev1.ConditionStatus {
	if b {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
