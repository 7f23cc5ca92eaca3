package disruption

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var epoch = time.Unix(1_000_000, 0)

func TestDemand(t *testing.T) {
	number, percent := intstr.FromInt32, intstr.FromString
	for _, c := range []struct {
		name             string
		least, most      *intstr.IntOrString
		covered, wanted  int32
		expected, health int32
	}{
		{"a number, whatever the owners want", new(number(2)), nil, 3, 9, 3, 2},
		{"more than there are", new(number(5)), nil, 3, 3, 3, 5},
		{"a percentage of what the owners want", new(percent("50%")), nil, 3, 10, 10, 5},
		{"half a pod is one", new(percent("50%")), nil, 7, 7, 7, 4},
		{"all", new(percent("100%")), nil, 4, 4, 4, 4},
		{"one may be missing", nil, new(number(1)), 2, 3, 3, 2},
		{"more may be missing than there are", nil, new(number(5)), 3, 3, 3, 0},
		{"a third may be missing, rounded up", nil, new(percent("34%")), 4, 4, 4, 2},
		{"none may be missing", nil, new(percent("0%")), 4, 4, 4, 4},
		{"nothing is asked", nil, nil, 4, 4, 0, 0},
		{"all of as many as can be", new(percent("100%")), nil, 1, math.MaxInt32, math.MaxInt32, math.MaxInt32},
		{"more of them than can be", new(percent("200%")), nil, 1, math.MaxInt32, math.MaxInt32, math.MaxInt32},
		{"none may be missing of as many as can be", nil, new(percent("200%")), 1, math.MaxInt32, math.MaxInt32, 0},
	} {
		spec := &policyv1.PodDisruptionBudgetSpec{MinAvailable: c.least, MaxUnavailable: c.most}
		got, err := demandOf(spec, c.covered, func() (int32, error) { return c.wanted, nil })
		if err != nil || got != (demand{c.expected, c.health}) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestOwnersAreAskedOnlyIfTheyMatter(t *testing.T) {
	failure := errors.New("no such kind")
	ask := func() (int32, error) { return 0, failure }
	if _, err := demandOf(&policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}, 1, ask); err != nil {
		t.Errorf("a number depends on no owner, but: %v", err)
	}
	for _, spec := range []policyv1.PodDisruptionBudgetSpec{{MinAvailable: new(intstr.FromString("1%"))}, {MaxUnavailable: new(intstr.FromInt32(1))}} {
		if _, err := demandOf(&spec, 1, ask); !errors.Is(err, failure) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

func podOf(name string, ready, deleting bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	if deleting {
		pod.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	return pod
}

func TestEvictedPodsDoNotCountUntilTheyStay(t *testing.T) {
	covered := []*corev1.Pod{podOf("a", true, false), podOf("b", true, false), podOf("c", false, false), podOf("d", true, true)}
	evicted := map[string]metav1.Time{"a": metav1.NewTime(epoch), "d": metav1.NewTime(epoch), "gone": metav1.NewTime(epoch)}
	got := countPods(covered, evicted, epoch.Add(30*time.Second))
	if _, waiting := got.evicted["a"]; got.healthy != 1 || len(got.evicted) != 1 || !waiting || len(got.stayed) != 0 {
		t.Errorf("early: %+v", got)
	}
	if got.again != 90*time.Second {
		t.Errorf("looks again after %s", got.again)
	}
	got = countPods(covered, evicted, epoch.Add(deletionTimeout))
	if got.healthy != 2 || len(got.evicted) != 0 || len(got.stayed) != 1 || got.stayed[0].Name != "a" || got.again != 0 {
		t.Errorf("late: %+v", got)
	}
}

func TestStatus(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	for _, c := range []struct {
		name    string
		demand  demand
		healthy int32
		allowed int32
		reason  string
	}{
		{"one to spare", demand{3, 2}, 3, 1, policyv1.SufficientPodsReason},
		{"just enough", demand{3, 2}, 2, 0, policyv1.InsufficientPodsReason},
		{"too few", demand{3, 2}, 1, 0, policyv1.InsufficientPodsReason},
		{"none desired", demand{0, 0}, 2, 0, policyv1.InsufficientPodsReason},
	} {
		got := statusOf(budget, c.demand, census{healthy: c.healthy})
		condition := meta.FindStatusCondition(got.Conditions, policyv1.DisruptionAllowedCondition)
		if got.DisruptionsAllowed != c.allowed || got.ObservedGeneration != 7 || condition == nil || condition.Reason != c.reason || condition.ObservedGeneration != 7 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestFailureClosesTheBudget(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 3, CurrentHealthy: 4}}
	got := failedStatus(budget, errors.New("why"))
	condition := meta.FindStatusCondition(got.Conditions, policyv1.DisruptionAllowedCondition)
	if got.DisruptionsAllowed != 0 || got.CurrentHealthy != 4 || condition == nil || condition.Reason != policyv1.SyncFailedReason || condition.Message != "why" {
		t.Errorf("%+v", got)
	}
	if len(budget.Status.Conditions) != 0 {
		t.Error("the cached budget was changed")
	}
}

// TestSumOfScales: owners of two billion pods each are no negative number of pods, for which a budget would allow
// each eviction, or none.
func TestSumOfScales(t *testing.T) {
	for _, c := range []struct {
		scales []int32
		want   int32
	}{
		{nil, 0}, {[]int32{1, 2}, 3}, {[]int32{math.MaxInt32, math.MaxInt32, 5}, math.MaxInt32},
		{[]int32{math.MaxInt32 - 1, 1}, math.MaxInt32}, {[]int32{math.MaxInt32, 1}, math.MaxInt32},
	} {
		if got := sum(slices.Values(c.scales)); got != c.want {
			t.Errorf("%v: %d, want %d", c.scales, got, c.want)
		}
	}
}
