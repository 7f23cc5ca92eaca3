package kubelet

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func options(t *testing.T) Options {
	t.Helper()
	opts := Options{NodeName: "n", StartAfter: time.Second, StopAfter: 2 * time.Second, RunFor: 5 * time.Second}
	if err := opts.ensureDefaults(); err != nil {
		t.Fatal(err)
	}
	return opts
}

// running is a pod whose one container has started at noon.
func running(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "c:1"}}}}
	if change != nil {
		change(pod)
	}
	opts := Options{RunFor: time.Second}
	pod.Status = accepted(pod, netip.MustParseAddr("10.0.0.1"), noon)
	pod.Status = played(pod, *opts.play(pod, times{accepted: noon}, noon).status, noon)
	return pod
}

func ofJob(pod *corev1.Pod) {
	yes := true
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: &yes}}
}

// expiring has a pod be active for so many seconds at most.
func expiring(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = &seconds }
}

// observed is a pod that runs, whose kubelet has seen a generation before the one that it has.
func observed(seen, has int64, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := running(func(pod *corev1.Pod) {
		pod.Generation = seen
		for _, change := range changes {
			change(pod)
		}
	})
	pod.Generation = has
	return pod
}

func TestNextStep(t *testing.T) {
	started := metav1.NewTime(noon)
	grace := func(seconds int64) *int64 { return &seconds }
	pending := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}, Status: corev1.PodStatus{Phase: corev1.PodPending, StartTime: &started}}
	expiringPending := pending.DeepCopy()
	expiring(1)(expiringPending)
	cases := map[string]struct {
		pod  *corev1.Pod
		seen times
		at   time.Duration // after noon
		want step
	}{
		"just bound":                                       {pod: &corev1.Pod{}, want: step{stage: stageAccept}},
		"containers are starting":                          {pod: pending, seen: times{accepted: noon}, at: 400 * time.Millisecond, want: step{stageMove, 600 * time.Millisecond}},
		"containers have started":                          {pod: pending, seen: times{accepted: noon}, at: time.Second, want: step{stage: stageMove}},
		"a service runs for ever":                          {pod: running(func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyAlways }), at: time.Hour, want: step{stage: stageNothing}},
		"a pod of its own that may end does not by itself": {pod: running(nil), at: time.Hour, want: step{stage: stageNothing}},
		"a Job's pod ends":                                 {pod: running(ofJob), at: 3 * time.Second, want: step{stageMove, 2 * time.Second}},
		"an annotation says how long": {
			pod: running(func(pod *corev1.Pod) { pod.Annotations = map[string]string{AnnotationRunFor: "10s"} }),
			at:  3 * time.Second, want: step{stageMove, 7 * time.Second},
		},
		"so does a command": {
			pod: running(func(pod *corev1.Pod) { pod.Spec.Containers[0].Command = []string{"sleep", "10"} }),
			at:  3 * time.Second, want: step{stageMove, 7 * time.Second},
		},
		"what is remembered is finer": {
			pod:  running(ofJob),
			seen: times{containers: map[containerState]time.Time{{name: "c", state: "running"}: noon.Add(700 * time.Millisecond)}},
			at:   3 * time.Second, want: step{stageMove, 2700 * time.Millisecond},
		},
		"a deleted pod stops in its own time": {
			pod:  &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &started, DeletionGracePeriodSeconds: grace(30)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
			seen: times{deleting: noon.Add(-time.Second)}, want: step{stageStop, time.Second},
		},
		"but not beyond its grace": {
			pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: &started, DeletionGracePeriodSeconds: grace(3), Annotations: map[string]string{AnnotationStopAfter: "1h"},
			}},
			seen: times{deleting: noon.Add(-2 * time.Second)}, want: step{stageStop, time.Second},
		},
		"a changed spec is observed":                     {pod: observed(1, 2), at: time.Hour, want: step{stage: stageShow}},
		"what has been observed is not said again":       {pod: observed(2, 2), at: time.Hour, want: step{stage: stageNothing}},
		"a change is told with the next thing":           {pod: observed(1, 2, ofJob), at: time.Hour, want: step{stage: stageMove}},
		"a pod that has ended is not written again":      {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: corev1.PodStatus{Phase: corev1.PodFailed, ObservedGeneration: 1}}, want: step{stage: stageNothing}},
		"a pod may be active for a while":                {pod: running(expiring(60)), at: 20 * time.Second, want: step{stageExpire, 40 * time.Second}},
		"and no longer":                                  {pod: running(expiring(60)), at: time.Minute, want: step{stage: stageExpire}},
		"it may end before that":                         {pod: running(func(pod *corev1.Pod) { ofJob(pod); expiring(60)(pod) }), at: 3 * time.Second, want: step{stageMove, 2 * time.Second}},
		"or be ended before it would":                    {pod: running(func(pod *corev1.Pod) { ofJob(pod); expiring(4)(pod) }), at: 3 * time.Second, want: step{stageExpire, time.Second}},
		"also while its containers are created":          {pod: expiringPending, seen: times{accepted: noon}, at: time.Second, want: step{stage: stageExpire}},
		"a deleted pod stops, however long it ran":       {pod: running(func(pod *corev1.Pod) { expiring(1)(pod); pod.DeletionTimestamp = &started }), seen: times{deleting: noon}, at: time.Minute, want: step{stage: stageStop}},
		"what has ended is not ended for its time again": {pod: &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: grace(1)}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded, StartTime: &started}}, at: time.Hour, want: step{stage: stageNothing}},
		"an ended pod has nothing to come":               {pod: &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, want: step{stage: stageNothing}},
	}
	opts := options(t)
	for name, c := range cases {
		if got := opts.next(c.pod, c.seen, noon.Add(c.at)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestStatusesAgreeWithThemselves(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init"}},
			Containers:     []corev1.Container{{Name: "a", Image: "img"}, {Name: "b"}},
		},
	}
	condition := func(kind corev1.PodConditionType) corev1.ConditionStatus {
		for _, c := range pod.Status.Conditions {
			if c.Type == kind {
				return c.Status
			}
		}
		return "absent"
	}
	check := func(what string, phase corev1.PodPhase, ready corev1.ConditionStatus) {
		t.Helper()
		if starts := condition(corev1.PodReadyToStartContainers); starts != ready { // here, both begin and end together
			t.Errorf("%s: ready to start containers: %s", what, starts)
		}
		if pod.Status.Phase != phase || condition(corev1.PodReady) != ready || len(pod.Status.ContainerStatuses) != 2 {
			t.Errorf("%s: phase %s, ready %s, %d containers", what, pod.Status.Phase, condition(corev1.PodReady), len(pod.Status.ContainerStatuses))
		}
	}
	pod.Status = accepted(pod, netip.MustParseAddr("10.0.0.1"), noon)
	check("accepted", corev1.PodPending, corev1.ConditionFalse)
	if pod.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Error("accepted: the container does not wait")
	}
	opts := options(t)
	pod.Status.PodIP = "10.0.0.9"
	pod.Status = played(pod, *opts.play(pod, times{accepted: noon}, noon.Add(time.Second)).status, noon.Add(time.Second))
	check("running", corev1.PodRunning, corev1.ConditionTrue)
	if pod.Status.InitContainerStatuses[0].State.Terminated == nil {
		t.Errorf("running: %+v", pod.Status)
	}
	pod.Status = stopped(pod, 3, corev1.PodFailed, noon.Add(2*time.Second))
	check("stopped", corev1.PodFailed, corev1.ConditionFalse)
	ended := pod.Status.ContainerStatuses[0].State.Terminated
	if ended == nil || ended.ExitCode != 3 || !ended.StartedAt.Time.Equal(noon.Add(time.Second)) {
		t.Errorf("stopped: %+v", ended)
	}
}

// TestReadyToStartContainers: a pod is from when it has its network until it has ended, whether its containers get on or not.
func TestReadyToStartContainers(t *testing.T) {
	for name, c := range map[string]struct {
		image, command string
		ip             string
		want           corev1.ConditionStatus
	}{
		"without an address":     {"i:1", "sleep", "", corev1.ConditionFalse},
		"running":                {"i:1", "sleep", "10.0.0.9", corev1.ConditionTrue},
		"its image is not there": {"i:404", "sleep", "10.0.0.9", corev1.ConditionTrue},
		"ended":                  {"i:1", "true", "10.0.0.9", corev1.ConditionFalse},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: c.image, Command: []string{c.command, "60"}}},
		}}
		opts := options(t)
		pod.Status = accepted(pod, netip.MustParseAddr("10.0.0.1"), noon)
		pod.Status.PodIP = c.ip
		now := noon.Add(time.Minute / 2)
		status := played(pod, *opts.play(pod, times{accepted: noon}, now).status, now)
		condition := status.Conditions[0]
		if condition.Type != corev1.PodReadyToStartContainers || condition.Status != c.want || condition.Reason != "" || condition.Message != "" {
			t.Errorf("%s: %+v", name, condition)
		}
	}
}

func TestReadinessGatesAreOthersToOpen(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "lb"}}}}
	if gatesOpen(pod) {
		t.Error("a gate without a condition is open")
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "lb", Status: corev1.ConditionTrue}}
	if !gatesOpen(pod) {
		t.Error("the gate stays closed")
	}
}

func TestAddressesAreUniqueUntilReleased(t *testing.T) {
	a := newAddresses(netip.MustParsePrefix("10.0.0.0/29"))
	a.claim("old", "10.0.0.3") // of a pod from before a restart
	seen := map[netip.Addr]bool{netip.MustParseAddr("10.0.0.3"): true}
	pods := []types.UID{"p1", "p2", "p3", "p4", "p5"}
	for _, pod := range pods {
		ip, ok := a.assign(pod)
		if !ok || seen[ip] {
			t.Fatalf("%s: %v, %v", pod, ip, ok)
		}
		seen[ip] = true
		if again, _ := a.assign(pod); again != ip {
			t.Errorf("%s: %v and then %v", pod, ip, again)
		}
	}
	if ip, ok := a.assign("p6"); ok {
		t.Fatalf("a full network gave %v", ip)
	}
	a.release("old")
	if ip, ok := a.assign("p6"); !ok || ip != netip.MustParseAddr("10.0.0.3") {
		t.Errorf("after a release: %v, %v", ip, ok)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opts := range map[string]Options{
		"node name":      {NodeName: "Not A Name"},
		"pod CIDR":       {NodeName: "n", PodCIDR: netip.MustParsePrefix("10.0.0.0/31")},
		"lease duration": {NodeName: "n", LeaseDuration: time.Millisecond},
	} {
		if err := opts.ensureDefaults(); err == nil {
			t.Errorf("a bad %s was accepted", name)
		}
	}
}

// TestExitCodes: pods of an Indexed Job, which share one template, can end with
// codes of their own.
func TestExitCodes(t *testing.T) {
	const index = "batch.kubernetes.io/job-completion-index"
	for name, c := range map[string]struct {
		annotations map[string]string
		want        int32
	}{
		"none":             {nil, 0},
		"of all":           {map[string]string{AnnotationExitCode: "3"}, 3},
		"no number":        {map[string]string{AnnotationExitCode: "x"}, 0},
		"of its index":     {map[string]string{AnnotationExitCode: "3", AnnotationExitCodeOfIndex: "1=4, 12=5", index: "12"}, 5},
		"of another index": {map[string]string{AnnotationExitCode: "3", AnnotationExitCodeOfIndex: "1=4", index: "12"}, 3},
		"without an index": {map[string]string{AnnotationExitCodeOfIndex: "1=4"}, 0},
	} {
		if got, _ := annotatedCode(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
