package builtin_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestTemplateGeneration: the annotation that was a field of DaemonSets once counts from 1, grows with the
// template alone, and is not the client's to lower.
func TestTemplateGeneration(t *testing.T) {
	generation := func(d *appsv1.DaemonSet) string { return d.Annotations[appsv1.DeprecatedTemplateGeneration] }
	r, obj := manifest(t, "daemonset")
	created := obj.(*appsv1.DaemonSet)
	if got := generation(created); got != "1" {
		t.Errorf("a new one has %q", got)
	}
	for name, tt := range map[string]struct {
		change func(*appsv1.DaemonSet)
		want   string
	}{
		"another image":      {func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "other" }, "2"},
		"another strategy":   {func(d *appsv1.DaemonSet) { d.Spec.MinReadySeconds = 3 }, "1"},
		"no annotations":     {func(d *appsv1.DaemonSet) { d.Annotations = nil }, "1"},
		"another generation": {func(d *appsv1.DaemonSet) { d.Annotations[appsv1.DeprecatedTemplateGeneration] = "17" }, "1"},
	} {
		changed := created.DeepCopy()
		tt.change(changed)
		r.Strategy.Default(changed)
		r.Strategy.PrepareForUpdate(changed, created)
		if got := generation(changed); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
		if generation(created) != "1" {
			t.Fatalf("%s: the old object was changed", name)
		}
	}
	_, obj = manifest(t, "daemonset", "metadata.annotations={deprecated.daemonset.template.generation: '5'}")
	if got := generation(obj.(*appsv1.DaemonSet)); got != "5" {
		t.Errorf("one that was moved here has %q", got)
	}
}

// TestDaemonSetsHaveBothBounds: a rollingUpdate has both of its numbers, also if the type is another one.
func TestDaemonSetsHaveBothBounds(t *testing.T) {
	for strategy, want := range map[string][2]string{
		"{type: OnDelete, rollingUpdate: {maxUnavailable: 2}}": {"2", "0"},
		"{type: OnDelete, rollingUpdate: {maxSurge: 2}}":       {"0", "2"},
		"{rollingUpdate: {}}":                                  {"1", "0"},
	} {
		_, obj := manifest(t, "daemonset", "spec.updateStrategy="+strategy)
		rolling := obj.(*appsv1.DaemonSet).Spec.UpdateStrategy.RollingUpdate
		if got := [2]string{rolling.MaxUnavailable.String(), rolling.MaxSurge.String()}; got != want {
			t.Errorf("%s: %v, not %v", strategy, got, want)
		}
	}
	_, obj := manifest(t, "daemonset", "spec.updateStrategy={type: OnDelete}")
	if rolling := obj.(*appsv1.DaemonSet).Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		t.Errorf("without a rollingUpdate, there is %v", rolling)
	}
}

// TestRollingStatefulSets: which of their updates is completed.
func TestRollingStatefulSets(t *testing.T) {
	for edit, want := range map[string]bool{
		"spec.updateStrategy-": true, "spec.updateStrategy={rollingUpdate: {}}": true, "spec.updateStrategy={type: RollingUpdate, rollingUpdate: {}}": true,
		"spec.updateStrategy={type: RollingUpdate}": false, "spec.updateStrategy={type: OnDelete}": false,
	} {
		_, obj := manifest(t, "statefulset", edit)
		strategy := obj.(*appsv1.StatefulSet).Spec.UpdateStrategy
		if got := strategy.RollingUpdate; (got != nil) != want || got != nil && (got.Partition == nil || got.MaxUnavailable == nil) {
			t.Errorf("%s: %+v", edit, got)
		}
	}
}

// TestJobsHaveTheLabelsOfTheirPods: a job without labels gets those of its template, those that the server
// adds to it included.
func TestJobsHaveTheLabelsOfTheirPods(t *testing.T) {
	_, obj := manifestAsIs(t, "job", "metadata.labels-", "spec.template.metadata.labels-")
	job := obj.(*batchv1.Job)
	job.UID = "1-2"
	strategy := builtin.Table().ByKind(batchv1.SchemeGroupVersion.WithKind("Job")).Strategy
	strategy.PrepareForCreate(job)
	if len(job.Labels) > 0 {
		t.Errorf("while it is validated, the job has the labels %v", job.Labels)
	}
	strategy.CompleteStored(job)
	for label, want := range map[string]string{
		"job-name": job.Name, batchv1.JobNameLabel: job.Name, "controller-uid": "1-2", batchv1.ControllerUidLabel: "1-2",
	} {
		if got := job.Labels[label]; got != want {
			t.Errorf("%s is %q, not %q", label, got, want)
		}
	}
	job.Labels["job-name"] = "mine"
	if job.Spec.Template.Labels["job-name"] != job.Name {
		t.Error("the job and its template share their labels")
	}
}

// TestWhatHasAGeneration: kinds of which one would think otherwise.
func TestWhatHasAGeneration(t *testing.T) {
	for kind, want := range map[schema.GroupVersionKind]bool{
		{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}: true,
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}: true,
		{Group: "networking.k8s.io", Version: "v1", Kind: "IPAddress"}:         false,
		{Group: "networking.k8s.io", Version: "v1", Kind: "ServiceCIDR"}:       false,
	} {
		if got := !builtin.Table().ByKind(kind).Strategy.NoGeneration; got != want {
			t.Errorf("%v: %v", kind, got)
		}
	}
}
