package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func validateAffinity(path *field.Path, affinity *corev1.Affinity) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var errs field.ErrorList
	if node := affinity.NodeAffinity; node != nil {
		at := path.Child("nodeAffinity")
		if node.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			errs = append(errs, ValidateNodeSelector(at.Child("requiredDuringSchedulingIgnoredDuringExecution"), node.RequiredDuringSchedulingIgnoredDuringExecution)...)
		}
		for i, preferred := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			term := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
			errs = append(errs, affinityWeight(term, preferred.Weight)...)
			errs = append(errs, validateNodeTerm(term.Child("preference"), &preferred.Preference)...)
		}
	}
	if pod := affinity.PodAffinity; pod != nil {
		errs = append(errs, validatePodTerms(path.Child("podAffinity"), pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		errs = append(errs, validatePodTerms(path.Child("podAntiAffinity"), pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	return errs
}

func affinityWeight(path *field.Path, weight int32) field.ErrorList {
	if weight < 1 || weight > 100 {
		return field.ErrorList{field.Invalid(path.Child("weight"), weight, "must be in the range 1-100")}
	}
	return nil
}

func validatePodTerms(path *field.Path, require []corev1.PodAffinityTerm, prefer []corev1.WeightedPodAffinityTerm) field.ErrorList {
	var errs field.ErrorList
	for i := range require {
		errs = append(errs, validatePodTerm(path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i), &require[i])...)
	}
	for i := range prefer {
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		errs = append(errs, affinityWeight(at, prefer[i].Weight)...)
		errs = append(errs, validatePodTerm(at.Child("podAffinityTerm"), &prefer[i].PodAffinityTerm)...)
	}
	return errs
}

func validatePodTerm(path *field.Path, term *corev1.PodAffinityTerm) field.ErrorList {
	errs := validate.LabelSelector(path.Child("labelSelector"), term.LabelSelector)
	errs = append(errs, validate.LabelSelector(path.Child("namespaceSelector"), term.NamespaceSelector)...)
	for i, ns := range term.Namespaces {
		errs = append(errs, validate.Invalid(path.Child("namespaces").Index(i), ns, validation.IsDNS1123Label(ns))...)
	}
	if term.TopologyKey == "" {
		return append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metavalidation.ValidateLabelName(term.TopologyKey, path.Child("topologyKey"))...)
}

// ValidateNodeSelector checks a node selector of an affinity or of a volume.
func ValidateNodeSelector(path *field.Path, selector *corev1.NodeSelector) field.ErrorList {
	at := path.Child("nodeSelectorTerms")
	if len(selector.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(at, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i := range selector.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(at.Index(i), &selector.NodeSelectorTerms[i])...)
	}
	return errs
}

func validateNodeTerm(path *field.Path, term *corev1.NodeSelectorTerm) field.ErrorList {
	var errs field.ErrorList
	for i, r := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(r.Key, at.Child("key"))...)
		errs = append(errs, validateNodeRequirement(at, r)...)
	}
	for i, r := range term.MatchFields {
		at := path.Child("matchFields").Index(i)
		if r.Key != metav1.ObjectNameField {
			errs = append(errs, field.Invalid(at.Child("key"), r.Key, "not a valid field selector key"))
		}
		errs = append(errs, validateNodeRequirement(at, r)...)
	}
	return errs
}

func validateNodeRequirement(path *field.Path, r corev1.NodeSelectorRequirement) field.ErrorList {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return field.ErrorList{field.Required(path.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'")}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return field.ErrorList{field.Forbidden(path.Child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			return field.ErrorList{field.Required(path.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")}
		}
	default:
		return field.ErrorList{field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator")}
	}
	return nil
}
