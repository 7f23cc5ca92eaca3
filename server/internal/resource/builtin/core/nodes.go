package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func nodeRules() define.Rules[*corev1.Node] {
	return define.Rules[*corev1.Node]{
		Default:                defaultNode,
		PrepareForCreate:       func(node *corev1.Node) { dropNodeConfig(node, &corev1.Node{}) },
		PrepareForStatusUpdate: dropNodeConfig,
		CompleteStored:         completeNodeStatus,
		CompleteStatus:         completeNodeStatus,
		Validate:               validateNode,
		ValidateUpdate:         validateNodeUpdate,
		ValidateStatus:         func(node, _ *corev1.Node) field.ErrorList { return validateNodeStatus(&node.Status) },
		Warnings:               nodeWarnings,
	}
}

// dropNodeConfig drops what kubelets said of a configuration that they got from the API, which none
// has done since Kubernetes 1.24. A node that has it keeps it.
func dropNodeConfig(node, old *corev1.Node) {
	if old.Status.Config == nil {
		node.Status.Config = nil
	}
}

// defaultNode makes the capacity the allocatable amount where that is not
// said.
func defaultNode(node *corev1.Node) {
	if node.Status.Allocatable == nil && node.Status.Capacity != nil {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
	podspec.RoundAmounts(node.Status.Capacity, node.Status.Allocatable)
	define.SingularDecides(&node.Spec.PodCIDR, &node.Spec.PodCIDRs, func(cidr *string) *string { return cidr })
}

// validateNode checks a node in kube-apiserver's order, and at its paths.
func validateNode(node *corev1.Node) field.ErrorList {
	errs := validateTaints(field.NewPath("metadata", "taints"), node.Spec.Taints)
	errs = append(errs, validateNodeResources(&node.Status)...)
	if swap := node.Status.NodeInfo.Swap; swap != nil && swap.Capacity != nil && *swap.Capacity <= 0 { // at kube-apiserver's path
		errs = append(errs, field.Invalid(field.NewPath("metadata", "nodeSwapStatus", "capacity"), *swap.Capacity, "must be greater than zero"))
	}
	errs = append(errs, validateDeclaredFeatures(node.Status.DeclaredFeatures)...)
	ranges := validate.SpecPath.Child("podCIDRs")
	for i, cidr := range node.Spec.PodCIDRs {
		errs = append(errs, validate.CIDR(ranges.Index(i), cidr)...)
	}
	errs = append(errs, validateRangeFamilies(ranges, node.Spec.PodCIDRs)...)
	return append(errs, tagsOfPreemption(node.Spec.PodPreemptionPolicy)...)
}

const maxPreemptionOwners = 20

// tagsOfPreemption checks who has switched off that the resize of a pod preempts others, as the tags
// of the type say: last.
func tagsOfPreemption(policy *corev1.NodePodPreemptionPolicy) field.ErrorList {
	if policy == nil {
		return nil
	}
	at, owners := validate.SpecPath.Child("podPreemptionPolicy", "disableResizePreemption"), policy.DisableResizePreemption
	if n := len(owners); n > maxPreemptionOwners {
		return field.ErrorList{field.TooMany(at, n, maxPreemptionOwners)}
	}
	var errs, repeated field.ErrorList
	for i, owner := range owners {
		errs = append(errs, validate.Invalid(at.Index(i), owner, content.IsLabelKey(owner))...)
		if slices.Contains(owners[:i], owner) {
			repeated = append(repeated, field.Duplicate(at.Index(i), owner))
		}
	}
	return append(errs, repeated...)
}

// validateRangeFamilies: of several ranges, each is of another family. Of those that are no
// ranges, kube-apiserver says so once more, as a mistake of its own.
func validateRangeFamilies(path *field.Path, ranges []string) field.ErrorList {
	if len(ranges) < 2 {
		return nil
	}
	var errs field.ErrorList
	both, err := netutils.IsDualStackCIDRStrings(ranges)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%w", err)))
	}
	if !both || len(ranges) > 2 {
		errs = append(errs, field.Invalid(path, ranges, "may specify no more than one CIDR for each IP family"))
	}
	return errs
}

func validateNodeResources(s *corev1.NodeStatus) field.ErrorList {
	return append(validateNodeAmounts("capacity", s.Capacity), validateNodeAmounts("allocatable", s.Allocatable)...)
}

func validateNodeAmounts(list string, amounts corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range validate.SortedNames(amounts) {
		errs = append(errs, podspec.ValidateAmount(field.NewPath("status", list, string(name)), name, amounts[name])...)
	}
	return errs
}

func validateTaints(path *field.Path, taints []corev1.Taint) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := sets.New[identity]()
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(taint.Key, at.Child("key"))...)
		if messages := validation.IsValidLabelValue(taint.Value); len(messages) > 0 {
			errs = append(errs, field.Invalid(at.Child("value"), taint.Value, strings.Join(messages, ";")))
		}
		errs = append(errs, podspec.TaintEffect(at.Child("effect"), taint.Effect)...)
		id := identity{taint.Key, taint.Effect}
		if seen.Has(id) {
			err := field.Duplicate(at, taint)
			err.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, err)
		}
		seen.Insert(id)
	}
	return errs
}

// validateNodeUpdate: the pod range and the provider's name may be set once.
func validateNodeUpdate(node, old *corev1.Node) field.ErrorList {
	errs := validateNodeAddresses(node.Status.Addresses)
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(node.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	switch was := old.Spec.ProviderID; {
	case was == "" || node.Spec.ProviderID == was:
	case node.Spec.ProviderID == "":
		errs = append(errs, field.Invalid(validate.SpecPath.Child("providerID"), nil, "field cannot be cleared once set"))
	default:
		errs = append(errs, field.Invalid(validate.SpecPath.Child("providerID"), nil, "field cannot be modified once set"))
	}
	if node.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("externalID"), "may not be updated"))
	}
	return errs
}

func nodeWarnings(node, _ *corev1.Node) []string {
	removed := node.Spec.ConfigSource != nil //nolint:staticcheck // clients that set it should know
	warnings := warnOf(removed, "spec.configSource: the feature is removed")
	warnings = append(warnings, warnOf(node.Spec.DoNotUseExternalID != "", "spec.externalID: this field is deprecated, and is unused by Kubernetes")...)
	for i, cidr := range node.Spec.PodCIDRs {
		warnings = append(warnings, validation.GetWarningsForCIDR(validate.SpecPath.Child("podCIDRs").Index(i), cidr)...)
	}
	return warnings
}
