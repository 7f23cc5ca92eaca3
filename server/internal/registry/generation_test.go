package registry_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// TestWhatHooksFillInIsNoChange: a client that writes the same again, without what the
// mutating hooks always fill in, writes nothing, and the generation stays.
func TestWhatHooksFillInIsNoChange(t *testing.T) {
	tolerate := func(_ context.Context, q *registry.Request) error {
		if pod, ok := q.Object.(*corev1.Pod); ok && !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "always" }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "always"})
		}
		return nil
	}
	f := newFixture(t, func(c *registry.Config) { c.Admission = append(c.Admission, tolerate) })
	first := f.create(t, "pods", newPod("p", ""))
	without := changing(func(p *corev1.Pod) { p.Spec.Tolerations = nil })
	for range 3 {
		result, err := f.of(t, "pods").Update(t.Context(), "default", "p", without, registry.UpdateOptions{Unconditional: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Object.GetGeneration(); got != 1 || result.Revision != first.Revision {
			t.Errorf("generation %d at revision %d, want 1 at %d", got, result.Revision, first.Revision)
		}
	}
	result, err := f.of(t, "pods").Update(t.Context(), "default", "p", changing(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" }), registry.UpdateOptions{Unconditional: true})
	if err != nil || result.Object.GetGeneration() != 2 {
		t.Errorf("a change gives generation %d (%v)", result.Object.GetGeneration(), err)
	}
}
