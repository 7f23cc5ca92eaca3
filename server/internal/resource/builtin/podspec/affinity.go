package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
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
			errs = append(errs, validateNodeTerm(term.Child("preference"), &preferred.Preference, false)...)
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
	for _, ns := range term.Namespaces {
		errs = append(errs, validate.Invalid(path.Child("namespace"), ns, validation.IsDNS1123Label(ns))...)
	}
	errs = append(errs, validateLabelKeys(path, term.MatchLabelKeys, term.MismatchLabelKeys, term.LabelSelector)...)
	if term.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metavalidation.ValidateLabelName(term.TopologyKey, path.Child("topologyKey"))...)
}

// validateLabelKeys checks the keys whose values a selector takes from the pod's own labels, of
// a term or constraint at a path. The selector of a new pod has them already: see SelectOwnLabels.
func validateLabelKeys(path *field.Path, match, mismatch []string, selector *metav1.LabelSelector) field.ErrorList {
	var errs field.ErrorList
	for _, keys := range []struct {
		name string
		list []string
	}{{"matchLabelKeys", match}, {"mismatchLabelKeys", mismatch}} {
		at := path.Child(keys.name)
		if len(keys.list) > 0 && selector == nil {
			errs = append(errs, field.Forbidden(at, "must not be specified when labelSelector is not set"))
			continue
		}
		for i, key := range keys.list {
			errs = append(errs, metavalidation.ValidateLabelName(key, at.Index(i))...)
		}
	}
	if selector != nil && len(match) > 0 {
		errs = append(errs, repeatedKeys(path, match, selector)...)
	}
	others := sets.New(mismatch...)
	for i, key := range match {
		if others.Has(key) {
			errs = append(errs, field.Invalid(path.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
	return errs
}

// repeatedKeys: a selector has a key of matchLabelKeys once, where it was merged.
func repeatedKeys(path *field.Path, match []string, selector *metav1.LabelSelector) field.ErrorList {
	var errs field.ErrorList
	seen, places := sets.KeySet(selector.MatchLabels), make(map[string]int, len(match))
	for i, key := range match {
		places[key] = i // the last one counts, as in kube-apiserver
	}
	for _, r := range selector.MatchExpressions {
		if i, ok := places[r.Key]; ok && seen.Has(r.Key) {
			errs = append(errs, field.Invalid(path.Index(i), r.Key, "exists in both matchLabelKeys and labelSelector"))
		}
		seen.Insert(r.Key)
	}
	return errs
}

// ValidateNodeSelector checks a node selector of an affinity, a volume or a device.
func ValidateNodeSelector(path *field.Path, selector *corev1.NodeSelector) field.ErrorList {
	at := path.Child("nodeSelectorTerms")
	if len(selector.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(at, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i := range selector.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(at.Index(i), &selector.NodeSelectorTerms[i], true)...)
	}
	return errs
}

// validateNodeTerm checks a term. A term that nodes must match has values that labels can have (strict); one that is
// only preferred may have others.
func validateNodeTerm(path *field.Path, term *corev1.NodeSelectorTerm, strict bool) field.ErrorList {
	var errs field.ErrorList
	for i, r := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		errs = append(errs, validateNodeRequirement(at, r)...)
		errs = append(errs, metavalidation.ValidateLabelName(r.Key, at.Child("key"))...)
		for j := range r.Values {
			if strict {
				errs = append(errs, validate.Invalid(at.Child("values").Index(j), r.Values[j], validation.IsValidLabelValue(r.Values[j]))...)
			}
		}
	}
	for i, r := range term.MatchFields {
		at := path.Child("matchFields").Index(i)
		errs = append(errs, validateNodeField(at, r)...)
	}
	return errs
}

// validateNodeField checks the selection of a node by its name.
func validateNodeField(path *field.Path, r corev1.NodeSelectorRequirement) field.ErrorList {
	var errs field.ErrorList
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(path.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	if r.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(path.Child("key"), r.Key, "not a valid field selector key"))
	}
	for i, name := range r.Values {
		errs = append(errs, validate.Invalid(path.Child("values").Index(i), name, validation.IsDNS1123Subdomain(name))...)
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
