package statefulset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Unix(1_000_000, 0)

// podOf reads "2 new ready": the ordinal, the revision, and the state: ready,
// pending, deleting or failed.
func podOf(text string) *corev1.Pod {
	var ordinal int
	var revision, state string
	_, _ = fmt.Sscan(text, &ordinal, &revision, &state)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("db-%d", ordinal), Labels: map[string]string{appsv1.StatefulSetRevisionLabel: revision},
	}}
	pod.Status.Phase = corev1.PodRunning
	switch state {
	case "ready":
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)}}
	case "pending":
		pod.Status.Phase = corev1.PodPending
	case "deleting":
		at := metav1.NewTime(epoch)
		pod.DeletionTimestamp = &at
	case "failed":
		pod.Status.Phase = corev1.PodFailed
	}
	return pod
}

func TestNextStep(t *testing.T) {
	three := []string{"0 new ready", "1 new ready", "2 new ready"}
	for _, c := range []struct {
		name     string
		replicas int32
		parallel bool
		part     int32
		pods     []string
		want     string
	}{
		{"the first", 3, false, 0, nil, "+0"},
		{"the second waits", 3, false, 0, []string{"0 new pending"}, ""},
		{"the second", 3, false, 0, three[:1], "+1"},
		{"a gap", 3, false, 0, []string{three[0], three[2]}, "+1"},
		{"a failed pod is replaced", 3, false, 0, []string{"0 new failed"}, "-0"},
		{"nothing to do", 3, false, 0, three, ""},
		{"the highest goes first", 1, false, 0, three, "-2"},
		{"one after the other", 1, false, 0, []string{three[0], three[1], "2 new deleting"}, ""},
		{"all at once", 3, true, 0, nil, "+0 +1 +2"},
		{"all away at once", 1, true, 0, three, "-1 -2"},
		{"update from the top", 3, false, 0, []string{"0 old ready", "1 old ready", "2 old ready"}, "-2"},
		{"update waits for the one above", 3, false, 0, []string{"0 old ready", "1 old ready", "2 new pending"}, ""},
		{"update goes on", 3, false, 0, []string{"0 old ready", "1 old ready", "2 new ready"}, "-1"},
		{"down to the partition", 3, false, 2, []string{"0 old ready", "1 old ready", "2 new ready"}, ""},
		{"an update mends what never became ready", 3, false, 0, []string{"0 old pending", "1 new ready", "2 new ready"}, "-0"},
		{"updates are in order even if parallel", 3, true, 0, []string{"0 old ready", "1 old ready", "2 old ready"}, "-2"},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
		set.Spec.Replicas = &c.replicas
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &c.part}
		if c.parallel {
			set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}
		var owned []*corev1.Pod
		for _, text := range c.pods {
			owned = append(owned, podOf(text))
		}
		p := next(set, owned, "new", epoch)
		var got []string
		for _, ordinal := range p.create {
			got = append(got, fmt.Sprintf("+%d", ordinal))
		}
		for _, pod := range p.delete {
			n, _ := ordinalOf(set, pod)
			got = append(got, fmt.Sprintf("-%d", n))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}

func TestOrdinals(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	for name, want := range map[string]int{"db-0": 0, "db-12": 12, "db-01": -1, "db--1": -1, "dbx-1": -1, "db": -1, "db-x": -1} {
		n, ok := ordinalOf(set, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
}

func TestPodsBelowThePartitionGetTheOldRevision(t *testing.T) {
	set := &appsv1.StatefulSet{}
	part := int32(2)
	set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &part}
	if got := revisionFor(set, 0, "new"); got != "new" {
		t.Errorf("a new set begins with %s", got)
	}
	set.Status.CurrentRevision = "old"
	if low, high := revisionFor(set, 1, "new"), revisionFor(set, 2, "new"); low != "old" || high != "new" {
		t.Errorf("1 gets %s, 2 gets %s", low, high)
	}
}
