package builtin_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestNewPodsSelectByOwnLabels: the keys whose values a selector takes from its pod's labels are merged
// into the selector when the pod is created. In a template they are not: its pods have labels that it
// has not.
func TestNewPodsSelectByOwnLabels(t *testing.T) {
	const term = "{topologyKey: a, labelSelector: {}, matchLabelKeys: [app, other], mismatchLabelKeys: [tenant]}"
	affinity := "spec.affinity={podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + term + "]}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: " + term + "}]}}"
	r, obj := manifest(t, "pod", "metadata.labels={app: a, tenant: b}", affinity,
		"spec.topologySpreadConstraints=[{topologyKey: a, labelSelector: {matchLabels: {c: d}}, matchLabelKeys: [app]}, {topologyKey: b, matchLabelKeys: [app]}]")
	complete := func(obj resource.Object) {
		if f := r.Strategy.CompleteNew; f != nil {
			f(obj)
		}
	}
	complete(obj)
	spec := obj.(*corev1.Pod).Spec
	for at, tt := range map[string]struct {
		selector *metav1.LabelSelector
		want     string
	}{
		"affinity":         {spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector, "app in (a),tenant notin (b)"},
		"anti-affinity":    {spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector, "app in (a),tenant notin (b)"},
		"spreading":        {spec.TopologySpreadConstraints[0].LabelSelector, "app in (a),c=d"},
		"without selector": {spec.TopologySpreadConstraints[1].LabelSelector, "<none>"},
	} {
		if got := metav1.FormatLabelSelector(tt.selector); got != tt.want {
			t.Errorf("%s: %s, not %s", at, got, tt.want)
		}
	}
	r, obj = manifest(t, "deployment", "spec.template.spec.topologySpreadConstraints=[{topologyKey: a, labelSelector: {}, matchLabelKeys: [app]}]")
	complete(obj)
	if got := obj.(*appsv1.Deployment).Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions; len(got) > 0 {
		t.Errorf("a template has %v", got)
	}
}
