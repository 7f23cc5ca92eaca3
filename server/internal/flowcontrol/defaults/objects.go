package defaults

import (
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
)

// copies returns deep copies, which the caller may change.
func copies[T interface{ DeepCopy() T }](lists ...[]T) []T {
	all := slices.Concat(lists...)
	for i := range all {
		all[i] = all[i].DeepCopy()
	}
	return all
}

// MandatoryFlowSchemas returns the FlowSchemas whose specs are fixed.
func MandatoryFlowSchemas() []*flowcontrolv1.FlowSchema {
	return copies(bootstrap.MandatoryFlowSchemas)
}

// MandatoryPriorityLevels returns the PriorityLevelConfigurations whose specs are fixed,
// except for what KeepSettable keeps.
func MandatoryPriorityLevels() []*flowcontrolv1.PriorityLevelConfiguration {
	return copies(bootstrap.MandatoryPriorityLevelConfigurations)
}

// FlowSchemas returns all default FlowSchemas.
func FlowSchemas() []*flowcontrolv1.FlowSchema {
	return copies(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas)
}

// PriorityLevels returns all default PriorityLevelConfigurations.
func PriorityLevels() []*flowcontrolv1.PriorityLevelConfiguration {
	return copies(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations)
}

// KeepSettable copies from a stored mandatory level what operators may set of it: how many
// seats the exempt level has, and lends.
func KeepSettable(wanted, stored *flowcontrolv1.PriorityLevelConfiguration) {
	if wanted.Spec.Exempt != nil && stored.Spec.Exempt != nil {
		wanted.Spec.Exempt = stored.Spec.Exempt.DeepCopy()
	}
}
