package podautoscaler

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// podNamed makes a pod that has been running and ready for an hour.
func podNamed(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	hour := metav1.NewTime(noon.Add(-time.Hour))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &hour,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: hour}},
		},
	}
	container := corev1.Container{Name: "c"}
	if cpu != "" {
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	pod.Spec.Containers = []corev1.Container{container}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func pending(pod *corev1.Pod) { pod.Status.Phase, pod.Status.StartTime = corev1.PodPending, nil }

func justStarted(pod *corev1.Pod) {
	now := metav1.NewTime(noon.Add(-time.Second))
	pod.Status.StartTime = &now
	pod.Status.Conditions[0].LastTransitionTime = now
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }

func TestReplicas(t *testing.T) {
	const unmeasured = -1
	type pods = map[*corev1.Pod]int64
	cpu := target{resource: corev1.ResourceCPU, utilization: 50}
	average := target{resource: corev1.ResourceCPU, average: 100}
	custom := target{average: 1000}
	for name, test := range map[string]struct {
		target  target
		current int32
		pods    pods
		want    int32
		fails   string
	}{
		"above":            {cpu, 2, pods{podNamed("a", "100m"): 100, podNamed("b", "100m"): 100}, 4, ""},
		"below":            {cpu, 2, pods{podNamed("a", "100m"): 20, podNamed("b", "100m"): 20}, 1, ""},
		"within tolerance": {cpu, 2, pods{podNamed("a", "100m"): 54, podNamed("b", "100m"): 54}, 2, ""},
		"beyond it":        {cpu, 2, pods{podNamed("a", "100m"): 56, podNamed("b", "100m"): 56}, 3, ""},
		"average":          {average, 2, pods{podNamed("a", ""): 250, podNamed("b", ""): 250}, 5, ""},
		"custom":           {custom, 2, pods{podNamed("a", ""): 2500, podNamed("b", ""): 2500}, 5, ""},
		// Of a custom metric a pod that was just started is believed.
		"custom, starting": {custom, 2, pods{podNamed("a", "", justStarted): 2500, podNamed("b", ""): 2500}, 5, ""},
		"custom, missing":  {custom, 2, pods{podNamed("a", ""): 2500, podNamed("b", ""): unmeasured}, 3, ""},
		// A pod that was just started and one without a sample count as idle when there
		// would be more, and as busy when there would be less.
		"starting":          {cpu, 2, pods{podNamed("a", "100m"): 150, podNamed("b", "100m", justStarted): 500}, 3, ""},
		"pending":           {cpu, 2, pods{podNamed("a", "100m"): 100, podNamed("b", "100m", pending): unmeasured}, 2, ""},
		"missing, above":    {cpu, 2, pods{podNamed("a", "100m"): 100, podNamed("b", "100m"): unmeasured}, 2, ""},
		"missing, below":    {cpu, 3, pods{podNamed("a", "100m"): 10, podNamed("b", "100m"): 10, podNamed("c", "100m"): unmeasured}, 3, ""},
		"deleted":           {cpu, 2, pods{podNamed("a", "100m"): 100, podNamed("b", "100m", deleted): 100}, 2, ""},
		"no request":        {cpu, 1, pods{podNamed("a", ""): 100}, 0, "missing request for cpu in container c of Pod a"},
		"no sample":         {cpu, 1, pods{podNamed("a", "100m"): unmeasured}, 0, "did not receive metrics"},
		"no pods":           {cpu, 1, nil, 0, "no pods returned by selector"},
		"another container": {target{resource: corev1.ResourceCPU, container: "x", utilization: 50}, 1, pods{podNamed("a", "100m"): 1}, 0, "container x not found"},
	} {
		var list []*corev1.Pod
		samples := map[string]sample{}
		for pod, value := range test.pods {
			list = append(list, pod)
			if value != unmeasured {
				samples[pod.Name] = sample{value: value, timestamp: noon, window: 15 * time.Second}
			}
		}
		got, _, err := replicasFor(test.target, test.current, list, samples, noon)
		if got != test.want || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %d, %v; want %d, %q", name, got, err, test.want, test.fails)
		}
	}
}

func TestReplicasForOneValue(t *testing.T) {
	unready := podNamed("c", "", func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse })
	three := []*corev1.Pod{podNamed("a", ""), podNamed("b", ""), unready}
	for _, test := range []struct {
		name          string
		value, target int64
		current       int32
		pods          []*corev1.Pod
		want          int32
	}{
		{"above", 20_000, 10_000, 3, three, 4}, // two are ready
		{"within tolerance", 10_900, 10_000, 3, three, 3},
		{"below", 4_000, 10_000, 3, three, 1},
		{"nothing", 0, 10_000, 3, three, 0},
		{"from zero", 25_000, 10_000, 0, nil, 3},
		{"absurd", math.MaxInt64, 1, 3, three, math.MaxInt32},
	} {
		if got, err := replicasForValue(test.value, test.target, test.current, test.pods); got != test.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", test.name, got, err, test.want)
		}
	}
	if _, err := replicasForValue(2, 1, 1, nil); err == nil {
		t.Error("no error without pods")
	}
	for _, test := range []struct {
		name          string
		value, target int64
		current, want int32
		average       int64
	}{
		{"above", 50_000, 10_000, 2, 5, 25_000},
		{"within tolerance", 21_000, 10_000, 2, 2, 10_500},
		{"below", 11_000, 10_000, 4, 2, 2_750},
		{"from zero", 25_000, 10_000, 0, 3, 0},
	} {
		if got, average := replicasForAverage(test.value, test.target, test.current); got != test.want || average != test.average {
			t.Errorf("%s: %d, %d; want %d, %d", test.name, got, average, test.want, test.average)
		}
	}
}
