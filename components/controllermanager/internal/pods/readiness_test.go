package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Unix(1_000_000, 0)

// pod is a running, ready one on a node; change makes it another.
func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(epoch)}}
	p.Spec.NodeName = "node-" + name
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)}}
	if change != nil {
		change(p)
	}
	return p
}

// TestDeletionOrder compares each pod with one that is dearer in that respect
// and cheaper in all that count less.
func TestDeletionOrder(t *testing.T) {
	for _, c := range []struct {
		name         string
		first, other func(*corev1.Pod)
	}{
		{"without a node", func(p *corev1.Pod) { p.Spec.NodeName = "" }, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }},
		{"pending", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, func(p *corev1.Pod) { p.Status.Conditions = nil }},
		{"not ready", func(p *corev1.Pod) { p.Status.Conditions = nil }, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "-5"} }},
		{"cheap", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "-10"} }, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "2"} }},
		{"ready for a shorter time", func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(epoch.Add(time.Hour)) }, nil},
		{"restarted", func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}} }, nil},
		{"younger", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(epoch.Add(time.Hour)) }, nil},
	} {
		a, b := pod("b", c.first), pod("a", c.other)
		for _, list := range [][]*corev1.Pod{{a, b}, {b, a}} {
			if SortForDeletion(list); list[0] != a {
				t.Errorf("%s: it is not deleted first", c.name)
			}
		}
	}
}

func TestCrowdedNodesLoseFirst(t *testing.T) {
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	list := []*corev1.Pod{pod("a", on("n1")), pod("b", on("n2")), pod("c", on("n2"))}
	SortForDeletion(list)
	if list[2].Name != "a" {
		t.Errorf("the lonely pod goes before those that share a node: %s, %s, %s", list[0].Name, list[1].Name, list[2].Name)
	}
}

func TestAvailability(t *testing.T) {
	for _, c := range []struct {
		name  string
		min   int32
		after time.Duration
		ready bool
		want  bool
		in    time.Duration
	}{
		{"at once", 0, 0, true, true, 0},
		{"not ready", 0, time.Hour, false, false, 0},
		{"too early", 10, 4 * time.Second, true, false, 6 * time.Second},
		{"long enough", 10, 10 * time.Second, true, true, 0},
	} {
		p := pod("a", nil)
		if !c.ready {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		}
		got, in := Available(p, c.min, epoch.Add(c.after))
		if got != c.want || in != c.in {
			t.Errorf("%s: %v in %s", c.name, got, in)
		}
	}
}

func TestDeletionCost(t *testing.T) {
	for text, want := range map[string]int{"": 0, "7": 7, "-7": -7, "x": 0, "1x": 0, "99999999999999999999": 0} {
		if got := deletionCost(pod("a", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: text} })); got != want {
			t.Errorf("%q costs %d, want %d", text, got, want)
		}
	}
}
