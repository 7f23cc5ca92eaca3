package podspec

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// deprecatedNodeLabels are labels of nodes that have another name now, or none.
var deprecatedNodeLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  `deprecated since v1.9`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": `deprecated since v1.22; use Taints and Tolerations instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// NodeLabelWarning says what a client should know that names a label of nodes; "" if nothing.
func NodeLabelWarning(key string) string { return deprecatedNodeLabels[key] }

// NodeTermWarnings are those about a term that selects nodes, and, if values is set, about values
// that no label can have.
func NodeTermWarnings(path *field.Path, term *corev1.NodeSelectorTerm, values bool) []string {
	var warnings []string
	for i, r := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		if text := NodeLabelWarning(r.Key); text != "" {
			warnings = append(warnings, at.Child("key").String()+": "+r.Key+" is "+text)
		}
		if !values {
			continue
		}
		for j, value := range r.Values {
			for _, message := range validation.IsValidLabelValue(value) {
				warnings = append(warnings, at.Child("values").Index(j).String()+": "+value+" is invalid, "+message)
			}
		}
	}
	return warnings
}

// NodeSelectorWarnings are those about a selector of nodes by their labels.
func NodeSelectorWarnings(path *field.Path, selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	var warnings []string
	for i, r := range selector.MatchExpressions {
		if text := NodeLabelWarning(r.Key); text != "" {
			warnings = append(warnings, path.Child("matchExpressions").Index(i).Child("key").String()+": "+r.Key+" is "+text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		if text := NodeLabelWarning(key); text != "" {
			warnings = append(warnings, path.Child("matchLabels").Child(key).String()+": "+text)
		}
	}
	return warnings
}

// newNodeLabels are the names that labels of volumes' nodes have now.
var newNodeLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	"beta.kubernetes.io/os": corev1.LabelOSStable, "beta.kubernetes.io/arch": corev1.LabelArchStable,
	corev1.LabelInstanceType: corev1.LabelInstanceTypeStable,
}

// SameNodeAffinity reports whether a volume can still be used where it could, the new names of
// labels aside.
func SameNodeAffinity(now, old *corev1.VolumeNodeAffinity) bool {
	if now == nil || now.Required == nil || old.Required == nil {
		return equality.Semantic.DeepEqual(now, old)
	}
	sameRequirement := func(now, old corev1.NodeSelectorRequirement) bool {
		if now.Key == newNodeLabels[old.Key] { // also if both are none, as in kube-apiserver: validation says what is wrong with it
			old.Key = now.Key
		}
		return equality.Semantic.DeepEqual(now, old)
	}
	return slices.EqualFunc(now.Required.NodeSelectorTerms, old.Required.NodeSelectorTerms, func(now, old corev1.NodeSelectorTerm) bool {
		return slices.EqualFunc(now.MatchExpressions, old.MatchExpressions, sameRequirement) && slices.EqualFunc(now.MatchFields, old.MatchFields, sameRequirement)
	})
}
