package scheduler

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// grownBy are numbers of things in a pod, each twice the one before it.
var grownBy = [...]int{1000, 2000, 4000}

// TestAffinityOfManyRequirements: what is allocated for a decision grows as the pod's affinity does, and not with the
// nodes besides.
func TestAffinityOfManyRequirements(t *testing.T) {
	requirements := func(n int) corev1.NodeSelectorTerm {
		var term corev1.NodeSelectorTerm
		for i := range n {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: fmt.Sprint("key-", i), Operator: corev1.NodeSelectorOpDoesNotExist})
		}
		return term
	}
	for name, affinity := range map[string]func(n int) *corev1.NodeAffinity{
		"required": func(n int) *corev1.NodeAffinity {
			return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{requirements(n)}}}
		},
		"preferred": func(n int) *corev1.NodeAffinity {
			return &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: requirements(n)}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			decide := func(requirements, nodes int) uint64 {
				s := schedulerOver()
				for i := range nodes {
					s.ledger.setNode(newNode(fmt.Sprint("n", i), nil))
				}
				pod := newPod("p", "", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity(requirements)} })
				return allocated(func() {
					if node, why := s.placed(pod); node == "" {
						t.Error(why)
					}
				})
			}
			var bytes [len(grownBy)]uint64
			for i, n := range grownBy {
				bytes[i] = decide(n, 1)
			}
			if bytes[2] > 3*bytes[1] && bytes[1] > 3*bytes[0] {
				t.Errorf("%d bytes for %d requirements", bytes, grownBy)
			}
			if one, many := decide(1000, 1), decide(1000, 20); many > 2*one {
				t.Errorf("%d bytes for one node, %d for twenty", one, many)
			}
		})
	}
}

// TestManySidecars: what is allocated for the amounts of a large pod grows as its containers do.
func TestManySidecars(t *testing.T) {
	var bytes [len(grownBy)]uint64
	for i, n := range grownBy {
		pod := newPod("p", "1", nil)
		for j := range n {
			sidecar := corev1.Container{Name: fmt.Sprint("s", j), RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}
			sidecar.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), corev1.ResourceName(fmt.Sprint("example.com/r", j)): resource.MustParse("1")}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, sidecar)
		}
		for j := range n {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("i", j)})
		}
		bytes[i] = allocated(func() {
			if got, want := amountsOf(pod), int64(n+1)*1000; got.milliCPU != want || len(got.extended) != n {
				t.Errorf("%d sidecars: %d millicores, want %d; %d extended resources", n, got.milliCPU, want, len(got.extended))
			}
		})
	}
	if bytes[2] > 3*bytes[1] && bytes[1] > 3*bytes[0] {
		t.Errorf("%d bytes for %d sidecars", bytes, grownBy)
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
