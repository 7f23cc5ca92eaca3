package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func nodeRules() define.Rules[*corev1.Node] {
	return define.Rules[*corev1.Node]{
		Default:        defaultNode,
		Validate:       validateNode,
		ValidateUpdate: validateNodeUpdate,
	}
}

// defaultNode makes the capacity the allocatable amount where that is not
// said.
func defaultNode(node *corev1.Node) {
	if node.Status.Allocatable == nil && node.Status.Capacity != nil {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
	}
	if node.Spec.PodCIDR == "" && len(node.Spec.PodCIDRs) > 0 {
		node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	}
}

func validateNode(node *corev1.Node) field.ErrorList {
	errs := validateTaints(validate.SpecPath.Child("taints"), node.Spec.Taints)
	for i, cidr := range node.Spec.PodCIDRs {
		errs = append(errs, validation.IsValidCIDR(validate.SpecPath.Child("podCIDRs").Index(i), cidr)...)
	}
	status := field.NewPath("status")
	errs = append(errs, validate.Quantities(status.Child("capacity"), node.Status.Capacity)...)
	errs = append(errs, validate.Quantities(status.Child("allocatable"), node.Status.Allocatable)...)
	seen := sets.New[corev1.NodeAddress]()
	for i, address := range node.Status.Addresses {
		if seen.Has(address) {
			errs = append(errs, field.Duplicate(status.Child("addresses").Index(i), address))
		}
		seen.Insert(address)
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
		errs = append(errs, validate.Invalid(at.Child("value"), taint.Value, validation.IsValidLabelValue(taint.Value))...)
		errs = append(errs, podspec.TaintEffect(at.Child("effect"), taint.Effect)...)
		if id := (identity{taint.Key, taint.Effect}); seen.Has(id) {
			errs = append(errs, field.Duplicate(at, taint))
		} else {
			seen.Insert(id)
		}
	}
	return errs
}

// validateNodeUpdate: the pod range and the provider's name may be set once.
func validateNodeUpdate(node, old *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(node.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if old.Spec.ProviderID != "" && node.Spec.ProviderID != old.Spec.ProviderID {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	return errs
}
