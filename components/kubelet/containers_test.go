package kubelet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// live plays a pod as the kubelet does, until nothing is due any more or the time is over, and
// returns what it shows: seconds since noon, phase, and a letter and restarts for each container,
// init containers first: "2 Running R T0", with the code of those that have ended.
func live(o *Options, pod *corev1.Pod, within time.Duration) (shown []string) {
	var seen times
	for now := noon; now.Sub(noon) <= within; {
		seen.remember(o, pod, now)
		next := o.next(pod, seen, now)
		switch {
		case next.stage == stageNothing:
			return shown
		case next.wait > 0:
			now = now.Add(next.wait)
			continue
		case next.stage == stageAccept:
			pod.Status = accepted(pod, netip.MustParseAddr("10.0.0.1"), now)
		case next.stage == stageMove:
			pod.Status = played(pod, *o.play(pod, seen, now).status, now)
		case next.stage == stageExpire:
			pod.Status = expired(pod, now)
		}
		shown = append(shown, fmt.Sprintf("%v %s%s", now.Sub(noon).Seconds(), pod.Status.Phase, describeAll(pod)))
	}
	return shown
}

func describeAll(pod *corev1.Pod) string {
	var b strings.Builder
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case s.State.Running != nil:
			fmt.Fprintf(&b, " R%d", s.RestartCount)
		case s.State.Terminated != nil:
			fmt.Fprintf(&b, " T%d", s.State.Terminated.ExitCode)
		default:
			fmt.Fprintf(&b, " %s", strings.TrimRight(s.State.Waiting.Reason, "abcdefghijklmnopqrstuvwxyz"))
		}
	}
	return b.String()
}

func TestLivesOfContainers(t *testing.T) {
	container := func(name string, command ...string) corev1.Container {
		return corev1.Container{Name: name, Image: "i:1", Command: command}
	}
	always := corev1.ContainerRestartPolicyAlways
	beside := container("s")
	beside.RestartPolicy = &always
	missing := container("c")
	missing.Image = "i:404"
	for name, c := range map[string]struct {
		policy     corev1.RestartPolicy
		init       []corev1.Container
		containers []corev1.Container
		within     time.Duration
		want       []string
	}{
		"a service": {corev1.RestartPolicyAlways, nil, []corev1.Container{container("c")}, time.Hour,
			[]string{"0 Pending ContainerC", "1 Running R0"}},
		"one that ends": {corev1.RestartPolicyNever, nil, []corev1.Container{container("c", "sleep", "3")}, time.Hour,
			[]string{"0 Pending ContainerC", "1 Running R0", "4 Succeeded T0"}},
		"two that end, one badly": {corev1.RestartPolicyNever, nil, []corev1.Container{container("c", "sh", "-c", "sleep 2; exit 4"), container("d", "sleep", "3")}, time.Hour,
			[]string{"0 Pending ContainerC ContainerC", "1 Running R0 R0", "3 Running T4 R0", "4 Failed T4 T0"}},
		"one that fails on": {corev1.RestartPolicyOnFailure, nil, []corev1.Container{container("c", "false")}, 100 * time.Second,
			[]string{"0 Pending ContainerC", "1 Running CrashLoopBackO", "11 Running CrashLoopBackO", "31 Running CrashLoopBackO", "71 Running CrashLoopBackO"}},
		"a service that ends": {corev1.RestartPolicyAlways, nil, []corev1.Container{container("c", "sleep", "60")}, 200 * time.Second,
			[]string{"0 Pending ContainerC", "1 Running R0", "61 Running R1", "121 Running CrashLoopBackO", "131 Running R2", "191 Running CrashLoopBackO"}},
		"init containers, one after the other": {corev1.RestartPolicyAlways, []corev1.Container{container("a", "sleep", "2"), container("b")}, []corev1.Container{container("c")}, time.Hour,
			[]string{"0 Pending PodI PodI PodI", "1 Pending R0 PodI PodI", "3 Running T0 T0 R0"}},
		"an init container that fails": {corev1.RestartPolicyNever, []corev1.Container{container("a", "false")}, []corev1.Container{container("c")}, time.Hour,
			[]string{"0 Pending PodI PodI", "1 Failed T1 PodI"}},
		"an init container that is tried again": {corev1.RestartPolicyAlways, []corev1.Container{container("a", "false")}, []corev1.Container{container("c")}, 20 * time.Second,
			[]string{"0 Pending PodI PodI", "1 Pending CrashLoopBackO PodI", "11 Pending CrashLoopBackO PodI"}},
		"a sidecar ends with the others": {corev1.RestartPolicyNever, []corev1.Container{beside}, []corev1.Container{container("c", "sleep", "2")}, time.Hour,
			[]string{"0 Pending PodI PodI", "1 Running R0 R0", "3 Succeeded T0 T0"}},
		"an image that does not exist": {corev1.RestartPolicyAlways, nil, []corev1.Container{missing, container("d")}, time.Hour,
			[]string{"0 Pending ContainerC ContainerC", "1 Pending ErrImageP R0", "11 Pending ImagePullBackO R0"}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: c.policy, InitContainers: c.init, Containers: c.containers}}
		opts := options(t)
		if got := live(&opts, pod, c.within); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// Ephemeral containers run beside the others, even those that are not there yet, once; and end with the pod.
func TestEphemeralContainers(t *testing.T) {
	ephemeral := func(name string, command ...string) corev1.EphemeralContainer {
		return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "i:1", Command: command}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy:  corev1.RestartPolicyOnFailure,
		InitContainers: []corev1.Container{{Name: "i", Image: "i:1", Command: []string{"sleep", "20"}}},
		Containers:     []corev1.Container{{Name: "c", Image: "i:1", Command: []string{"sleep", "20"}}},
	}}
	opts := options(t)
	states := func() (states []string) {
		for _, s := range pod.Status.EphemeralContainerStatuses {
			if s.Ready || s.Started != nil || s.RestartCount != 0 {
				t.Errorf("%+v", s)
			}
			states = append(states, stateOf(&s).state)
			if ended := s.State.Terminated; ended != nil {
				states[len(states)-1] = fmt.Sprint(ended.ExitCode)
			}
		}
		return states
	}
	live(&opts, pod, 2*time.Second)
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{ephemeral("shell"), ephemeral("fails", "sh", "-c", "sleep 1; exit 3")}
	live(&opts, pod, 10*time.Second)
	if got := states(); !slices.Equal(got, []string{"running", "3"}) || pod.Status.Phase != corev1.PodPending {
		t.Errorf("beside an init container: %q, %s", got, pod.Status.Phase)
	}
	live(&opts, pod, time.Minute)
	if got := states(); !slices.Equal(got, []string{"143", "3"}) || pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("with the pod: %q, %s", got, pod.Status.Phase)
	}
}

// The image of a running pod may be replaced by one that exists.
func TestImageThatIsMended(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:404"}}}}
	opts := options(t)
	live(&opts, pod, time.Hour)
	pod.Spec.Containers[0].Image = "i:1"
	if got, want := live(&opts, pod, time.Hour), []string{"0 Running R0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A pod that is active for longer than it may is failed, and so are the containers that it came to.
func TestLivesThatExpire(t *testing.T) {
	container := func(name string, command ...string) corev1.Container {
		return corev1.Container{Name: name, Image: "i:1", Command: command}
	}
	always := corev1.ContainerRestartPolicyAlways
	beside := container("s")
	beside.RestartPolicy = &always
	missing := container("m")
	missing.Image = "i:404"
	for name, c := range map[string]struct {
		policy     corev1.RestartPolicy
		init       []corev1.Container
		containers []corev1.Container
		want       []string
	}{
		"a service": {corev1.RestartPolicyAlways, nil, []corev1.Container{container("c")},
			[]string{"0 Pending ContainerC", "1 Running R0", "5 Failed T0"}},
		"one that would end later, and one that has ended": {corev1.RestartPolicyNever, nil, []corev1.Container{container("c", "sleep", "60"), container("d", "sleep", "2")},
			[]string{"0 Pending ContainerC ContainerC", "1 Running R0 R0", "3 Running R0 T0", "5 Failed T143 T0"}},
		"one that would end in time": {corev1.RestartPolicyNever, nil, []corev1.Container{container("c", "sleep", "2")},
			[]string{"0 Pending ContainerC", "1 Running R0", "3 Succeeded T0"}},
		"one that waits to be started again": {corev1.RestartPolicyOnFailure, nil, []corev1.Container{container("c", "false")},
			[]string{"0 Pending ContainerC", "1 Running CrashLoopBackO", "5 Failed T137"}},
		"one whose image is missing, and its sidecar": {corev1.RestartPolicyNever, []corev1.Container{beside}, []corev1.Container{missing},
			[]string{"0 Pending PodI PodI", "1 Pending R0 ErrImageP", "5 Failed T0 T137"}},
		"an init container, and what is never come to": {corev1.RestartPolicyAlways, []corev1.Container{container("a"), container("b", "sleep", "60"), container("d")}, []corev1.Container{container("c")},
			[]string{"0 Pending PodI PodI PodI PodI", "1 Pending T0 R0 PodI PodI", "5 Failed T0 T143 PodI PodI"}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: c.policy, InitContainers: c.init, Containers: c.containers}}
		expiring(5)(pod)
		opts := options(t)
		if got := live(&opts, pod, time.Hour); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
		if pod.Status.Phase == corev1.PodFailed && (pod.Status.Reason != "DeadlineExceeded" || pod.Status.Message == "") {
			t.Errorf("%s: failed for %q: %q", name, pod.Status.Reason, pod.Status.Message)
		}
	}
}
