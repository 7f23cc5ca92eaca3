package nodelifecycle

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Unix(1_000_000, 0)

func node(ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "KubeletSays"}}
	n.Spec.Taints = taints
	return n
}

func TestHeartbeatsAreTimedByOurClock(t *testing.T) {
	h := heartbeats{seen: map[string]heartbeat{}}
	if at := h.observe("n", "1", epoch); !at.Equal(epoch) {
		t.Errorf("a node seen for the first time is silent since %s", at)
	}
	if at := h.observe("n", "1", epoch.Add(time.Hour)); !at.Equal(epoch) {
		t.Error("the same sign counts as a new one")
	}
	later := epoch.Add(2 * time.Hour)
	if at := h.observe("n", "2", later); !at.Equal(later) {
		t.Error("a new sign does not count")
	}
	h.forget("n")
	if at := h.observe("n", "2", later.Add(time.Hour)); !at.Equal(later.Add(time.Hour)) {
		t.Error("a node that was registered anew inherits a silence")
	}
}

func TestOurOwnVerdictIsNoSignOfLife(t *testing.T) {
	n := node(corev1.ConditionTrue)
	n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(epoch)
	alive := signOf("7", n)
	n.Status.Conditions = unknown(n.Status.Conditions, epoch.Add(time.Minute))
	n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(epoch.Add(time.Minute))
	silent := signOf("7", n)
	n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(epoch.Add(time.Hour))
	if signOf("7", n) != silent || silent == alive {
		t.Errorf("signs %q, %q, %q", alive, silent, signOf("7", n))
	}
}

func TestTaintsFollowTheConditions(t *testing.T) {
	foreign := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	added := metav1.NewTime(epoch.Add(-time.Hour))
	unreachable := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	drained := corev1.Taint{Key: "drained", Effect: corev1.TaintEffectNoExecute}
	type keys = map[string]int
	for _, c := range []struct {
		name   string
		node   *corev1.Node
		change func(*corev1.Node)
		spared bool
		want   keys
	}{
		{"healthy", node(corev1.ConditionTrue), nil, false, keys{}},
		{"healthy again", node(corev1.ConditionTrue, unreachable, foreign), nil, false, keys{"gpu": 1}},
		{"silent", node(corev1.ConditionUnknown, foreign), nil, false, keys{"gpu": 1, corev1.TaintNodeUnreachable: 2}},
		{"not ready", node(corev1.ConditionFalse, unreachable), nil, false, keys{corev1.TaintNodeNotReady: 2}},
		{"cordoned", node(corev1.ConditionTrue), func(n *corev1.Node) { n.Spec.Unschedulable = true }, false, keys{corev1.TaintNodeUnschedulable: 1}},
		{"full disk", node(corev1.ConditionTrue), func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
		}, false, keys{corev1.TaintNodeDiskPressure: 1}},
		{"silent as all are", node(corev1.ConditionUnknown, unreachable, drained), nil, true, keys{"drained": 1, corev1.TaintNodeUnreachable: 1}},
		{"not ready as all are", node(corev1.ConditionFalse), nil, true, keys{corev1.TaintNodeNotReady: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.node)
			}
			got := keys{}
			taints := taintsOf(c.node, c.spared, epoch)
			for _, taint := range taints {
				got[taint.Key]++
			}
			for key, n := range c.want {
				if got[key] != n {
					t.Errorf("%s %d times, want %d", key, got[key], n)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("taints %v, want %v", got, c.want)
			}
			if c.node.Spec.Taints = taints; !sameTaints(taintsOf(c.node, c.spared, epoch.Add(time.Hour)), taints) {
				t.Error("the taints change although nothing else does")
			}
		})
	}
	for _, taint := range taintsOf(node(corev1.ConditionUnknown, unreachable), false, epoch) {
		if taint.Effect == corev1.TaintEffectNoExecute && !taint.TimeAdded.Equal(&added) {
			t.Error("a taint that stays gets a new time, which puts evictions off for ever")
		}
	}
}

func TestEvictionTime(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	added := metav1.NewTime(epoch.Add(-time.Hour)) // which counts for nothing
	silent := []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added},
	}
	exists := func(s *int64) corev1.Toleration {
		return corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: s}
	}
	for _, c := range []struct {
		name        string
		tolerations []corev1.Toleration
		taints      []corev1.Taint
		in          time.Duration
		leaves      bool
	}{
		{"no taint", nil, nil, 0, false},
		{"no NoExecute taint", nil, silent[:1], 0, false},
		{"not tolerated", nil, silent, 0, true},
		{"five minutes", []corev1.Toleration{exists(seconds(300))}, silent, 300 * time.Second, true},
		{"the first counts", []corev1.Toleration{exists(seconds(300)), exists(seconds(20)), exists(nil)}, silent, 300 * time.Second, true},
		{"the first is without an end", []corev1.Toleration{{Operator: corev1.TolerationOpExists}, exists(seconds(20))}, silent, 0, false},
		{"for ever", []corev1.Toleration{exists(nil)}, silent, 0, false},
		{"everything", []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, silent, 0, false},
		{"negative is at once", []corev1.Toleration{exists(seconds(-1))}, silent, 0, true},
		{"another taint is not tolerated", []corev1.Toleration{exists(nil)}, append(silent[:2:2], corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}), 0, true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: c.tolerations}}
		at, leaves := evictionTime(pod, c.taints, func(*corev1.Taint) time.Time { return epoch })
		if leaves != c.leaves || leaves && at.Sub(epoch) != c.in {
			t.Errorf("%s: leaves %v after %s", c.name, leaves, at.Sub(epoch))
		}
	}
}

// TestManyTolerations: taints are looked up in a pod's tolerations, which are read once and not for each taint.
func TestManyTolerations(t *testing.T) {
	pod, taints := &corev1.Pod{}, []corev1.Taint(nil)
	for i := range 30_000 {
		key := fmt.Sprint("k", i)
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(i + 1))})
		taints = append(taints, corev1.Taint{Key: key, Value: "v", Effect: corev1.TaintEffectNoExecute})
	}
	at, leaves := evictionTime(pod, taints, func(*corev1.Taint) time.Time {
		clear(pod.Spec.Tolerations)
		return epoch
	})
	if !leaves || at.Sub(epoch) != time.Second {
		t.Errorf("leaves %v after %s", leaves, at.Sub(epoch))
	}
}
