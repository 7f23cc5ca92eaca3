package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxUserPriority is the highest priority that users may define; above it
	// are the system's own classes.
	maxUserPriority int32 = 1_000_000_000
	systemPrefix          = "system-"
)

// systemPriorities are the classes that every cluster has.
var systemPriorities = map[string]int32{
	"system-cluster-critical": 2 * maxUserPriority,
	"system-node-critical":    2*maxUserPriority + 1000,
}

func priorityClassRules() rules[*schedulingv1.PriorityClass] {
	return rules[*schedulingv1.PriorityClass]{
		Default: func(c *schedulingv1.PriorityClass) {
			setDefaultPtr(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
		},
		Validate: validatePriorityClass,
		ValidateUpdate: func(c, old *schedulingv1.PriorityClass) field.ErrorList {
			var errs field.ErrorList
			if c.Value != old.Value {
				errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
			}
			return append(errs, unchanged(field.NewPath("preemptionPolicy"), c.PreemptionPolicy, old.PreemptionPolicy)...)
		},
	}
}

func validatePriorityClass(c *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	switch value, known := systemPriorities[c.Name]; {
	case known && value != c.Value:
		errs = append(errs, field.Invalid(field.NewPath("value"), c.Value, "a system priority class has a fixed value"))
	case !known && strings.HasPrefix(c.Name, systemPrefix):
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), "priority class names with '"+systemPrefix+"' prefix are reserved for system use only"))
	case !known && c.Value > maxUserPriority:
		errs = append(errs, field.Forbidden(field.NewPath("value"), "maximum allowed value of a user defined priority is 1000000000"))
	}
	return append(errs, oneOf(field.NewPath("preemptionPolicy"), valueOr(c.PreemptionPolicy, ""), corev1.PreemptLowerPriority, corev1.PreemptNever)...)
}

func runtimeClassRules() rules[*nodev1.RuntimeClass] {
	return rules[*nodev1.RuntimeClass]{
		Validate: func(c *nodev1.RuntimeClass) field.ErrorList {
			errs := requiredSyntax(field.NewPath("handler"), c.Handler, validation.IsDNS1123Label)
			if c.Overhead != nil {
				errs = append(errs, validateQuantities(field.NewPath("overhead", "podFixed"), c.Overhead.PodFixed)...)
			}
			if c.Scheduling != nil {
				errs = append(errs, validateTolerations(field.NewPath("scheduling", "tolerations"), c.Scheduling.Tolerations)...)
			}
			return errs
		},
		ValidateUpdate: func(c, old *nodev1.RuntimeClass) field.ErrorList {
			return unchanged(field.NewPath("handler"), c.Handler, old.Handler)
		},
	}
}
