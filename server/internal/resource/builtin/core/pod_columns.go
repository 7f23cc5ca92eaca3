package core

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// nodeLost is the status reason of a pod whose node no longer answers.
const nodeLost = "NodeLost"

func podLayout() columns.Layout {
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return columns.Table(func(p *corev1.Pod, now time.Time) []any {
		s := summarize(p)
		ip := p.Status.PodIP
		if len(p.Status.PodIPs) > 0 {
			ip = p.Status.PodIPs[0].IP
		}
		return []any{
			p.Name, columns.Fraction(s.ready, s.total), s.status, s.restarts.text(now), columns.Since(p.CreationTimestamp, now),
			columns.Or(ip, columns.None), columns.Or(p.Spec.NodeName, columns.None), columns.Or(p.Status.NominatedNodeName, columns.None), readinessGates(p),
		}
	},
		columns.NameColumn,
		columns.Text("Ready", "The aggregate readiness state of this pod for accepting traffic."),
		columns.Text("Status", "The aggregate status of the containers in this pod."),
		columns.Text("Restarts", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
		columns.AgeColumn,
		columns.Wide(columns.Text("IP", status["podIP"])),
		columns.Wide(columns.Text("Node", spec["nodeName"])),
		columns.Wide(columns.Text("Nominated Node", status["nominatedNodeName"])),
		columns.Wide(columns.Text("Readiness Gates", spec["readinessGates"])),
	)
}

// PodConditions returns the conditions of an object's table row: a pod that is
// finished is marked as completed; nothing for everything else.
func PodConditions(obj resource.Object) []metav1.TableRowCondition {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var message string
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		message = "The pod has completed successfully."
	case corev1.PodFailed:
		message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{{
		Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(pod.Status.Phase), Message: message,
	}}
}

// podSummary is what the columns say about all containers of a pod together.
type podSummary struct {
	status       string
	ready, total int
	restarts     restarts
}

func summarize(p *corev1.Pod) podSummary {
	sidecars := sidecarNames(p)
	s := podSummary{status: podReason(p), total: len(p.Spec.Containers) + len(sidecars)}
	waiting := s.addInitContainers(p, sidecars)
	if waiting != "" {
		s.status = waiting
	}
	if waiting == "" || podCondition(p, corev1.PodInitialized) {
		s.addContainers(p, sidecars)
	}
	if p.DeletionTimestamp != nil {
		switch {
		case p.Status.Reason == nodeLost:
			s.status = string(corev1.PodUnknown)
		case p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
			s.status = "Terminating"
		}
	}
	return s
}

// podReason is the status of a pod of which no container says more.
func podReason(p *corev1.Pod) string {
	scheduled := columns.Condition(p.Status.Conditions, podConditionType, corev1.PodScheduled)
	if scheduled != nil && scheduled.Reason == corev1.PodReasonSchedulingGated {
		return scheduled.Reason
	}
	return columns.Or(p.Status.Reason, string(p.Status.Phase))
}

// addInitContainers goes through the init containers up to the first that is
// neither finished nor a started sidecar, and returns the status that it gives
// the pod, or "" if there is none.
func (s *podSummary) addInitContainers(p *corev1.Pod, sidecars map[string]bool) (waiting string) {
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		s.restarts.add(c)
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
		case sidecars[c.Name] && columns.ValueOr(c.Started, false):
			if c.Ready {
				s.ready++
			}
		case c.State.Terminated != nil:
			return "Init:" + terminationReason(c.State.Terminated)
		case waitingReason(c) != "" && waitingReason(c) != "PodInitializing":
			return "Init:" + waitingReason(c)
		default:
			return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
	}
	return ""
}

// addContainers adds the containers proper. From here on, restarts of init
// containers that are over no longer count; those of sidecars do.
func (s *podSummary) addContainers(p *corev1.Pod, sidecars map[string]bool) {
	s.restarts = restarts{}
	for i := range p.Status.InitContainerStatuses {
		if c := &p.Status.InitContainerStatuses[i]; sidecars[c.Name] {
			s.restarts.add(c)
		}
	}
	running, failure := false, ""
	// Backwards, so that the first container that has something to say wins.
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		s.restarts.add(c)
		switch {
		case waitingReason(c) != "":
			s.status = waitingReason(c)
		case c.State.Terminated != nil:
			s.status = terminationReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failure = s.status
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	// One finished container does not make a pod completed that still runs, or of which another one failed.
	switch {
	case s.status != "Completed":
	case running && podCondition(p, corev1.PodReady):
		s.status = string(corev1.PodRunning)
	case failure != "":
		s.status = failure
	case running:
		s.status = "NotReady"
	}
}

// restarts counts how often containers ended and were started again.
type restarts struct {
	count int
	last  time.Time
}

func (r *restarts) add(c *corev1.ContainerStatus) {
	r.count += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(r.last) {
		r.last = t.FinishedAt.Time
	}
}

func (r restarts) text(now time.Time) string {
	if r.count == 0 || r.last.IsZero() {
		return strconv.Itoa(r.count)
	}
	return fmt.Sprintf("%d (%s ago)", r.count, columns.SinceTime(r.last, now))
}

// sidecarNames are the init containers that keep running beside the others
// (KEP-753).
func sidecarNames(p *corev1.Pod) map[string]bool {
	var names map[string]bool
	for i := range p.Spec.InitContainers {
		if columns.ValueOr(p.Spec.InitContainers[i].RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			continue
		}
		if names == nil {
			names = map[string]bool{}
		}
		names[p.Spec.InitContainers[i].Name] = true
	}
	return names
}

func waitingReason(c *corev1.ContainerStatus) string {
	if c.State.Waiting == nil {
		return ""
	}
	return c.State.Waiting.Reason
}

func terminationReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func podConditionType(c *corev1.PodCondition) corev1.PodConditionType { return c.Type }

func podCondition(p *corev1.Pod, want corev1.PodConditionType) bool {
	c := columns.Condition(p.Status.Conditions, podConditionType, want)
	return c != nil && c.Status == corev1.ConditionTrue
}

func readinessGates(p *corev1.Pod) string {
	gates := p.Spec.ReadinessGates
	if len(gates) == 0 {
		return columns.None
	}
	holding := 0
	for _, gate := range gates {
		if podCondition(p, gate.ConditionType) {
			holding++
		}
	}
	return columns.Fraction(holding, len(gates))
}
