package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// A container that ends is started again at once the first time, and then after
	// restartBackoff, which doubles up to maxRestartBackoff, as by the real kubelet.
	restartBackoff    = 10 * time.Second
	maxRestartBackoff = 5 * time.Minute
	// pullBackoff is after how long a missing image is waited for, instead of asked for.
	pullBackoff = 10 * time.Second
)

// Reasons of containers that wait.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonPullError    = "ErrImagePull"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonCrashLoop    = "CrashLoopBackOff"
)

// play moves a pod's containers to where they are at now. It changes a copy of the status, in which
// those of containers are aligned.
type play struct {
	opts     *Options
	pod      *corev1.Pod
	programs *programs
	seen     times
	now      time.Time
	status   *corev1.PodStatus

	moved bool      // a container is in another state than the pod shows
	due   time.Time // when the next one will be; zero: none by itself
	said  []event   // what happened
}

// event is one of the pod's, for kubectl describe.
type event struct{ kind, reason, message string }

// role is what a container is in its pod.
type role int

const (
	roleMain role = iota
	roleInit
	roleEphemeral
)

// ephemeralOf returns a pod's ephemeral containers as containers.
func ephemeralOf(pod *corev1.Pod) (all []corev1.Container) {
	for i := range pod.Spec.EphemeralContainers {
		all = append(all, corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}

// run moves all containers: ephemeral ones, which wait for no others, init containers one after the other, then the others.
func (p *play) run() {
	creating := p.seen.accepted.Add(p.opts.StartAfter)
	ephemeral := ephemeralOf(p.pod)
	for i := range ephemeral {
		status := &p.status.EphemeralContainerStatuses[i]
		p.move(&ephemeral[i], status, creating, roleEphemeral)
		status.Ready, status.Started = false, nil // a kubelet probes none
	}
	for i := range p.pod.Spec.InitContainers {
		c, status := &p.pod.Spec.InitContainers[i], &p.status.InitContainerStatuses[i]
		p.move(c, status, creating, roleInit)
		if sidecar(c) && status.State.Running != nil || status.State.Terminated != nil && status.State.Terminated.ExitCode == 0 {
			continue
		}
		return
	}
	for i := range p.pod.Spec.Containers {
		p.move(&p.pod.Spec.Containers[i], &p.status.ContainerStatuses[i], creating, roleMain)
	}
}

// move brings one container to its state at now.
func (p *play) move(c *corev1.Container, s *corev1.ContainerStatus, creating time.Time, as role) {
	program := p.programs.of(c, as)
	since := p.seen.since(s)
	for {
		var due time.Time
		switch {
		case s.State.Terminated != nil:
			if !p.restarts(c, s.State.Terminated.ExitCode, as) {
				return
			}
			if s.LastTerminationState = s.State; s.RestartCount > 0 {
				p.wait(s, reasonCrashLoop, fmt.Sprintf("back-off %v restarting failed container=%s", backoffOf(s), c.Name))
				p.say(corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s", c.Name)
			} else {
				p.start(c, s)
			}
			since = p.now
			continue
		case s.State.Running != nil:
			if program.runs < 0 {
				return
			}
			if due = since.Add(program.runs); !p.now.Before(due) {
				p.end(s, program.code)
				continue
			}
		case waits(s, reasonCrashLoop):
			if due = since.Add(backoffOf(s)); !p.now.Before(due) {
				p.start(c, s)
				since = p.now
				continue
			}
		case !pulls(p.pod, c.Image):
			if due = p.pull(c, s, creating, since); due.IsZero() {
				return
			}
		default:
			if due = creating; !p.now.Before(due) || waits(s, reasonPullError) || waits(s, reasonPullBackOff) {
				p.start(c, s)
				since = p.now
				continue
			}
		}
		p.later(due)
		return
	}
}

// pull has a container wait for an image that does not exist, and returns when that shows
// otherwise; zero: it goes on.
func (p *play) pull(c *corev1.Container, s *corev1.ContainerStatus, creating, since time.Time) (due time.Time) {
	switch {
	case waits(s, reasonPullBackOff):
		return time.Time{}
	case waits(s, reasonPullError):
		if due := since.Add(pullBackoff); p.now.Before(due) {
			return due
		}
		p.wait(s, reasonPullBackOff, fmt.Sprintf("Back-off pulling image %q", c.Image))
		p.say(corev1.EventTypeWarning, "BackOff", "Back-off pulling image %q", c.Image)
		return time.Time{}
	case p.now.Before(creating):
		return creating
	}
	p.wait(s, reasonPullError, fmt.Sprintf("simulated: the image %q does not exist", c.Image))
	p.say(corev1.EventTypeWarning, "Failed", "Failed to pull image %q (simulated: it does not exist)", c.Image)
	return p.now.Add(pullBackoff)
}

// later notes when a container's state is another one.
func (p *play) later(due time.Time) {
	if p.due.IsZero() || due.Before(p.due) {
		p.due = due
	}
}

func (p *play) say(kind, reason, format string, args ...any) {
	p.said = append(p.said, event{kind, reason, fmt.Sprintf(format, args...)})
}

// start has a container run from now on.
func (p *play) start(c *corev1.Container, s *corev1.ContainerStatus) {
	p.moved = true
	yes := true
	s.ContainerID = fmt.Sprintf("simulated://%s/%s", p.pod.UID, c.Name)
	if s.LastTerminationState.Terminated != nil {
		s.RestartCount++
		s.ContainerID += fmt.Sprintf("/%d", s.RestartCount)
	}
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.now)}}
	s.Image, s.ImageID, s.Ready, s.Started = c.Image, c.Image, true, &yes
	p.say(corev1.EventTypeNormal, "Started", "Started container %s (simulated: the image %q is not pulled)", c.Name, c.Image)
}

// end has a container end now.
func (p *play) end(s *corev1.ContainerStatus, code int32) {
	p.moved = true
	terminate(s, code, p.now)
}

// wait has a container wait from now on.
func (p *play) wait(s *corev1.ContainerStatus, reason, message string) {
	p.moved = true
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	s.Ready = false
}

// terminate ends a running container with a code.
func terminate(s *corev1.ContainerStatus, code int32, now time.Time) {
	reason, at := "Completed", metav1.NewTime(now)
	if code != 0 {
		reason = "Error"
	}
	started := at
	if s.State.Running != nil {
		started = s.State.Running.StartedAt
	}
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: at, ContainerID: s.ContainerID,
	}}
	s.Ready, s.Started = false, new(bool)
}

// restarts reports whether a container that has ended is started again.
func (p *play) restarts(c *corev1.Container, code int32, as role) bool {
	policy := p.pod.Spec.RestartPolicy
	switch {
	case as == roleInit && sidecar(c):
		return true
	case as == roleEphemeral, policy == corev1.RestartPolicyNever:
		return false
	case as == roleInit || policy == corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// backoffOf is how long a container waits that has ended once more.
func backoffOf(s *corev1.ContainerStatus) time.Duration {
	return min(restartBackoff<<min(s.RestartCount-1, 10), maxRestartBackoff)
}

func waits(s *corev1.ContainerStatus, reason string) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == reason
}

// aligned returns statuses in the order of their containers, so that each is found without a search, and
// then those that have none. One that is not there is added. It keeps what is aligned already.
func aligned(containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	i := 0
	for i < min(len(containers), len(statuses)) && containers[i].Name == statuses[i].Name {
		i++
	}
	if i == len(containers) {
		return statuses
	}
	of := make(map[string]int, len(statuses))
	for i := len(statuses) - 1; i >= 0; i-- {
		of[statuses[i].Name] = i // the first one, if two have the name
	}
	list, taken := make([]corev1.ContainerStatus, 0, len(containers)), make([]bool, len(statuses))
	for i := range containers {
		c := &containers[i]
		if at, ok := of[c.Name]; ok {
			list, taken[at] = append(list, statuses[at]), true
		} else {
			list = append(list, created(c, reasonCreating))
		}
	}
	for i := range statuses {
		if !taken[i] {
			list = append(list, statuses[i])
		}
	}
	return list
}

// alignAll aligns the statuses of a pod's containers.
func alignAll(pod *corev1.Pod, status *corev1.PodStatus) {
	status.InitContainerStatuses = aligned(pod.Spec.InitContainers, status.InitContainerStatuses)
	status.ContainerStatuses = aligned(pod.Spec.Containers, status.ContainerStatuses)
	status.EphemeralContainerStatuses = aligned(ephemeralOf(pod), status.EphemeralContainerStatuses)
}

// created is the status of a container that is to run.
func created(c *corev1.Container, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(bool),
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}
