package registry_test

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestAnswersShowWhatIsStored: autoscaling/v2 has a default that autoscaling/v1 has not, and
// a write in v1 is answered with it, as a read is.
func TestAnswersShowWhatIsStored(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	r, ok := f.Lookup("autoscaling", "v1", "horizontalpodautoscalers")
	if !ok {
		t.Fatal("autoscaling/v1 is not served")
	}
	bare := func() *autoscalingv1.HorizontalPodAutoscaler {
		a := &autoscalingv1.HorizontalPodAutoscaler{}
		a.Name, a.Spec.MaxReplicas = "a", 3
		a.Spec.ScaleTargetRef = autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}
		return a
	}
	check := func(what string, result *registry.Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := result.Object.(*autoscalingv1.HorizontalPodAutoscaler).Spec.TargetCPUUtilizationPercentage; got == nil || *got != 80 {
			t.Errorf("%s: the answer has a target of %v", what, got)
		}
	}
	result, err := r.Create(t.Context(), "default", bare(), registry.WriteOptions{DryRun: true})
	check("dry run", result, err)
	result, err = r.Create(t.Context(), "default", bare(), registry.WriteOptions{})
	check("create", result, err)
	without := changing(func(a *autoscalingv1.HorizontalPodAutoscaler) {
		a.Spec.TargetCPUUtilizationPercentage = nil
		a.Spec.MaxReplicas++
	})
	result, err = r.Update(t.Context(), "default", "a", without, registry.UpdateOptions{})
	check("update", result, err)
	p, err := patch.Parse(types.MergePatchType, []byte(`{"spec":{"targetCPUUtilizationPercentage":null,"maxReplicas":7}}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err = r.Patch(t.Context(), "default", "a", p, registry.PatchOptions{})
	check("patch", result, err)
	read, err := r.GetFromStore(t.Context(), "default", "a")
	if err != nil || *read.(*autoscalingv1.HorizontalPodAutoscaler).Spec.TargetCPUUtilizationPercentage != 80 {
		t.Errorf("a read shows %+v (%v)", read, err)
	}
}
