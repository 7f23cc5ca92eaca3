package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SelectOwnLabels merges into the selectors of a new pod's affinity and spreading the labels of its
// own that they name by their keys (KEP-3633, KEP-3243).
func SelectOwnLabels(spec *corev1.PodSpec, labels map[string]string) {
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		selectLabels(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
	}
	if spec.Affinity == nil {
		return
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		selectInTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution, labels)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		selectInTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution, labels)
	}
}

func selectInTerms(require []corev1.PodAffinityTerm, prefer []corev1.WeightedPodAffinityTerm, labels map[string]string) {
	selectIn := func(term *corev1.PodAffinityTerm) {
		selectLabels(term.LabelSelector, term.MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
		selectLabels(term.LabelSelector, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn, labels)
	}
	for i := range require {
		selectIn(&require[i])
	}
	for i := range prefer {
		selectIn(&prefer[i].PodAffinityTerm)
	}
}

// selectLabels adds requirements to a selector. One that is nil selects nothing, and stays.
func selectLabels(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator, labels map[string]string) {
	if selector == nil {
		return
	}
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
}
