package registry_test

import (
	"maps"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestJobsWithoutLabelsHaveThoseOfTheirPods: with those that are generated, also in the answer to a
// dry run.
func TestJobsWithoutLabelsHaveThoseOfTheirPods(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.Resources = builtin.Table() })
	jobs, ok := f.Lookup("batch", "v1", "jobs")
	if !ok {
		t.Fatal("Jobs are not served")
	}
	generated := []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"}
	all, ofUser := append([]string{"app"}, generated...), map[string]string{"app": "a"}
	for _, test := range []struct {
		name             string
		labels, ofPods   map[string]string
		manual           bool
		want, wantOfPods []string
	}{
		{name: "labels-of-pods", ofPods: ofUser, want: all, wantOfPods: all},
		{name: "no-labels", want: generated, wantOfPods: generated},
		{name: "the-same-labels", labels: ofUser, ofPods: maps.Clone(ofUser), want: []string{"app"}, wantOfPods: all},
		{name: "manual", ofPods: ofUser, manual: true, want: []string{"app"}, wantOfPods: []string{"app"}},
	} {
		job := func() *batchv1.Job {
			j := &batchv1.Job{}
			j.Name, j.Labels, j.Spec.Template.Labels = test.name, maps.Clone(test.labels), maps.Clone(test.ofPods)
			j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "example.com/i:1"}}
			if test.manual {
				j.Spec.ManualSelector, j.Spec.Selector = &test.manual, &metav1.LabelSelector{MatchLabels: test.ofPods}
			}
			return j
		}
		for _, dry := range []bool{true, false} {
			result, err := jobs.Create(t.Context(), "default", job(), registry.WriteOptions{DryRun: dry})
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			made := result.Object.(*batchv1.Job)
			if got := slices.Sorted(maps.Keys(made.Labels)); !slices.Equal(got, test.want) {
				t.Errorf("%s, dry run %v: the job has the labels %q, want %q", test.name, dry, got, test.want)
			}
			if got := slices.Sorted(maps.Keys(made.Spec.Template.Labels)); !slices.Equal(got, test.wantOfPods) {
				t.Errorf("%s, dry run %v: its pods have the labels %q, want %q", test.name, dry, got, test.wantOfPods)
			}
		}
	}
}
