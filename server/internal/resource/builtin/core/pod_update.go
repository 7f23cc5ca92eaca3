package core

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
	"github.com/levelwire/levelwire/server/internal/resource/structequal"
)

const podSpecImmutable = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validatePodUpdate allows the few changes that a running pod can follow.
func validatePodUpdate(pod, old *corev1.Pod) field.ErrorList {
	if len(pod.Spec.Containers) != len(old.Spec.Containers) {
		return field.ErrorList{field.Forbidden(validate.SpecPath.Child("containers"), "pod updates may not add or remove containers")}
	}
	if len(pod.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return field.ErrorList{field.Forbidden(validate.SpecPath.Child("initContainers"), "pod updates may not add or remove containers")}
	}
	errs, stop := validateDeadlineChange(pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds)
	if stop {
		return errs
	}
	errs = append(errs, validateAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations)...)
	errs = append(errs, validateGateChange(pod, old)...)

	// What may change is set back to what it was; the rest must be the same.
	rest := pod.Spec
	rest.Containers, rest.InitContainers = slices.Clone(rest.Containers), slices.Clone(rest.InitContainers)
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	rest.Tolerations = old.Spec.Tolerations
	rest.SchedulingGates = old.Spec.SchedulingGates
	if define.ValueOr(old.Spec.TerminationGracePeriodSeconds, 0) < 0 && define.ValueOr(pod.Spec.TerminationGracePeriodSeconds, 0) == 1 {
		rest.TerminationGracePeriodSeconds = old.Spec.TerminationGracePeriodSeconds
	}
	if len(old.Spec.SchedulingGates) > 0 {
		// A pod that may not be scheduled yet may still be directed (KEP-3838).
		rest.NodeSelector = old.Spec.NodeSelector
		rest.Affinity = withNodeAffinity(rest.Affinity, old.Spec.Affinity)
	}
	if !structequal.Semantic(&rest, &old.Spec) && !structequal.Semantic(&rest, podspec.Rounded(&old.Spec)) {
		errs = append(errs, field.Forbidden(validate.SpecPath, podSpecImmutable))
	}
	return errs
}

// validateDeadlineChange: a deadline may be set and shortened. Of a pod with one that cannot be,
// kube-apiserver says no more, and stop is true.
func validateDeadlineChange(now, before *int64) (errs field.ErrorList, stop bool) {
	at := validate.SpecPath.Child("activeDeadlineSeconds")
	switch {
	case now == nil && before == nil:
		return nil, false
	case now == nil:
		return field.ErrorList{field.Invalid(at, now, "must not update from a positive integer to nil value")}, false
	case *now < 0 || *now > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, *now, validation.InclusiveRangeError(0, math.MaxInt32))}, true
	case before != nil && *now > *before:
		return field.ErrorList{field.Invalid(at, *now, "must be less than or equal to previous value")}, true
	}
	return nil, false
}

// validateAddedTolerations: tolerations may be added; of existing ones only
// the seconds may change.
func validateAddedTolerations(now, before []corev1.Toleration) field.ErrorList {
	kept := make(sets.Set[corev1.Toleration], len(now))
	for _, t := range now {
		t.TolerationSeconds = nil
		kept.Insert(t)
	}
	for _, old := range before {
		old.TolerationSeconds = nil
		if !kept.Has(old) {
			return field.ErrorList{field.Forbidden(validate.SpecPath.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

// validateGateChange: scheduling gates may only be removed, and the node
// selector and then the node affinity of a gated pod only narrowed.
func validateGateChange(pod, old *corev1.Pod) field.ErrorList {
	errs := validateAddedGates(pod.Spec.SchedulingGates, old.Spec.SchedulingGates)
	if len(old.Spec.SchedulingGates) > 0 {
		for key, value := range old.Spec.NodeSelector {
			if got, ok := pod.Spec.NodeSelector[key]; !ok || got != value {
				errs = append(errs, field.Invalid(validate.SpecPath.Child("nodeSelector"), pod.Spec.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
				break
			}
		}
		errs = append(errs, validateNarrowedAffinity(nodeAffinity(pod.Spec.Affinity), nodeAffinity(old.Spec.Affinity))...)
	}
	return errs
}

// validateAddedGates complains about each new gate, of several with one name at the last.
func validateAddedGates(now, before []corev1.PodSchedulingGate) field.ErrorList {
	last := make(map[string]int, len(now))
	for i, gate := range now {
		last[gate.Name] = i
	}
	for _, gate := range before {
		delete(last, gate.Name)
	}
	var errs field.ErrorList
	for i, gate := range now {
		if at, added := last[gate.Name]; added && at == i {
			errs = append(errs, field.Forbidden(validate.SpecPath.Child("schedulingGates").Index(i).Child("name"), "only deletion is allowed, but found new scheduling gate '"+gate.Name+"'"))
		}
	}
	return errs
}

// validateNarrowedAffinity: terms are alternatives, so that a term more or less lets a pod onto other
// nodes; a requirement more in a term does not.
func validateNarrowedAffinity(now, before *corev1.NodeAffinity) field.ErrorList {
	terms, old := requiredTerms(now), requiredTerms(before)
	if len(old) == 0 {
		return nil
	}
	at := validate.SpecPath.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	if len(terms) != len(old) {
		return field.ErrorList{field.Invalid(at, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")}
	}
	var errs field.ErrorList
	for i := range old {
		// A term without requirements matches no node.
		matchesNone := len(old[i].MatchExpressions)+len(old[i].MatchFields) == 0
		if matchesNone && len(terms[i].MatchExpressions)+len(terms[i].MatchFields) > 0 ||
			!beginsWith(terms[i].MatchExpressions, old[i].MatchExpressions) || !beginsWith(terms[i].MatchFields, old[i].MatchFields) {
			errs = append(errs, field.Invalid(at.Index(i), terms[i], "only additions are allowed (no mutations or deletions)"))
		}
	}
	return errs
}

func beginsWith(now, before []corev1.NodeSelectorRequirement) bool {
	return len(now) >= len(before) && (len(before) == 0 || equality.Semantic.DeepEqual(now[:len(before)], before))
}

func requiredTerms(affinity *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
	if affinity == nil || affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func nodeAffinity(affinity *corev1.Affinity) *corev1.NodeAffinity {
	if affinity == nil {
		return nil
	}
	return affinity.NodeAffinity
}

// withNodeAffinity returns the affinity with the node affinity of another one.
func withNodeAffinity(affinity, other *corev1.Affinity) *corev1.Affinity {
	if equality.Semantic.DeepEqual(nodeAffinity(affinity), nodeAffinity(other)) {
		return affinity
	}
	result := corev1.Affinity{NodeAffinity: nodeAffinity(other)}
	if affinity != nil {
		result.PodAffinity, result.PodAntiAffinity = affinity.PodAffinity, affinity.PodAntiAffinity
	}
	if other == nil && result == (corev1.Affinity{}) {
		return nil
	}
	return &result
}
