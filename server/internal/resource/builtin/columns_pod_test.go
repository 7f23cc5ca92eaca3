package builtin_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/core"
)

func runningPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: createdAgo("web-0", 5*time.Minute),
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.7", PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{running("web")},
		},
	}
}

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, Ready: true, Started: ptr(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
}

func waiting(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func terminated(name, reason string, code, signal int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Signal: signal},
	}}
}

// restarted adds restarts to a status, the last one some time ago.
func restarted(s corev1.ContainerStatus, count int32, since time.Duration) corev1.ContainerStatus {
	s.RestartCount = count
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ago(since)}
	return s
}

func TestPodRow(t *testing.T) {
	gated := runningPod()
	gated.Status.NominatedNodeName = "node-2"
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "a"}, {ConditionType: "b"}, {ConditionType: "c"}}
	gated.Status.Conditions = []corev1.PodCondition{
		{Type: "a", Status: corev1.ConditionTrue}, {Type: "b", Status: corev1.ConditionFalse},
	}
	runRows(t, []rowTest{
		{"running", runningPod(), []any{
			"web-0", "1/1", "Running", "0", "5m", "10.0.0.7", "node-1", "<none>", "<none>",
		}},
		{"new", &corev1.Pod{ObjectMeta: createdAgo("p", 0), Status: corev1.PodStatus{Phase: corev1.PodPending}}, []any{
			"p", "0/0", "Pending", "0", "0s", "<none>", "<none>", "<none>", "<none>",
		}},
		{"gates and nomination", gated, []any{
			"web-0", "1/1", "Running", "0", "5m", "10.0.0.7", "node-1", "node-2", "1/3",
		}},
		{"empty", &corev1.Pod{}, []any{
			"", "0/0", "", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>",
		}},
	})
}

func TestPodStatus(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for _, test := range []struct {
		name                    string
		change                  func(*corev1.Pod)
		ready, status, restarts string
	}{
		{"creating", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodPending
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("web", "ContainerCreating")}
		}, "0/1", "ContainerCreating", "0"},
		{"crash loop", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{restarted(waiting("web", "CrashLoopBackOff"), 7, 5*time.Minute)}
		}, "0/1", "CrashLoopBackOff", "7 (5m ago)"},
		{"latest restart of two", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log"})
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				restarted(running("web"), 2, 10*time.Second), restarted(running("log"), 1, time.Hour),
			}
		}, "2/2", "Running", "3 (10s ago)"},
		{"restarts without a date", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 4 }, "1/1", "Running", "4"},
		{"first container speaks", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log"})
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("web", "ImagePullBackOff"), terminated("log", "Error", 1, 0)}
		}, "0/2", "ImagePullBackOff", "0"},
		{"completed", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("web", "Completed", 0, 0)}
		}, "0/1", "Completed", "0"},
		{"exit code", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("web", "", 3, 0)}
		}, "0/1", "ExitCode:3", "0"},
		{"signal", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("web", "", 137, 9)}
		}, "0/1", "Signal:9", "0"},
		{"one of two completed, ready", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "once"})
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, terminated("once", "Completed", 0, 0))
		}, "1/2", "Running", "0"},
		{"one of two completed, not ready", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "once"})
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, terminated("once", "Completed", 0, 0))
			p.Status.Conditions = nil
		}, "1/2", "NotReady", "0"},
		{"one completed, one failed", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("web", "Completed", 0, 0), terminated("other", "Error", 1, 0)}
		}, "0/1", "Error", "0"},
		{"one completed, one failed, one running", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "once"})
			p.Status.ContainerStatuses = append([]corev1.ContainerStatus{terminated("once", "Completed", 0, 0), terminated("other", "", 3, 0)}, p.Status.ContainerStatuses...)
			p.Status.Conditions = nil
		}, "1/2", "ExitCode:3", "0"},
		{"evicted", func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
		}, "0/1", "Evicted", "0"},
		{"gated", func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated"},
			}}
		}, "0/1", "SchedulingGated", "0"},
		{"terminating", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: epoch} }, "1/1", "Terminating", "0"},
		{"deleted after it ended", func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: epoch}
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("web", "Completed", 0, 0)}
		}, "0/1", "Completed", "0"},
		{"node lost", func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: epoch}
			p.Status.Reason = "NodeLost"
		}, "1/1", "Unknown", "0"},
		{"init waiting", initPod(waiting("i1", "PodInitializing")), "0/1", "Init:0/2", "0"},
		{"init half way", initPod(terminated("i1", "Completed", 0, 0), running("i2")), "0/1", "Init:1/2", "0"},
		{"init cannot start", initPod(waiting("i1", "ErrImagePull")), "0/1", "Init:ErrImagePull", "0"},
		{"init failed", initPod(terminated("i1", "Error", 1, 0)), "0/1", "Init:Error", "0"},
		{"init exit code", initPod(terminated("i1", "", 2, 0)), "0/1", "Init:ExitCode:2", "0"},
		{"init signal", initPod(terminated("i1", "", 137, 9)), "0/1", "Init:Signal:9", "0"},
		{"init restarts count until it is over", initPod(restarted(waiting("i1", "CrashLoopBackOff"), 3, time.Minute)),
			"0/1", "Init:CrashLoopBackOff", "3 (60s ago)"},
		{"init restarts no longer count", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i1"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{restarted(terminated("i1", "Completed", 0, 0), 3, time.Minute)}
		}, "1/1", "Running", "0"},
		{"sidecar counts as a container", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: &always}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{restarted(running("mesh"), 2, time.Minute)}
		}, "2/2", "Running", "2 (60s ago)"},
		{"sidecar not started", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: &always}}
			p.Status.Phase = corev1.PodPending
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{waiting("mesh", "")}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("web", "PodInitializing")}
		}, "0/2", "Init:0/1", "0"},
		{"sidecar restarts after initialization", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: &always}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{restarted(waiting("mesh", "CrashLoopBackOff"), 5, time.Minute)}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue})
		}, "1/2", "Init:CrashLoopBackOff", "5 (60s ago)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := runningPod()
			test.change(p)
			row := cells(t, p)
			wantCells(t, row[1:4], test.ready, test.status, test.restarts)
		})
	}
}

// initPod has two init containers and has not come past them.
func initPod(statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "i1"}, {Name: "i2"}}
		p.Status = corev1.PodStatus{
			Phase: corev1.PodPending, InitContainerStatuses: statuses,
			ContainerStatuses: []corev1.ContainerStatus{waiting("web", "PodInitializing")},
		}
	}
}

func TestPodConditions(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]int{
		corev1.PodPending: 0, corev1.PodRunning: 0, corev1.PodSucceeded: 1, corev1.PodFailed: 1,
	} {
		got := core.PodConditions(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}})
		if len(got) != want {
			t.Errorf("%s: %v", phase, got)
		}
		for _, c := range got {
			if c.Type != metav1.RowCompleted || c.Status != metav1.ConditionTrue || c.Reason != string(phase) {
				t.Errorf("%s: %+v", phase, c)
			}
		}
	}
	if got := core.PodConditions(&corev1.Secret{}); got != nil {
		t.Errorf("a secret is not completed: %v", got)
	}
}
