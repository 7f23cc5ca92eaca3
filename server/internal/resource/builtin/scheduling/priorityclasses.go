package scheduling

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
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

func priorityClassRules() define.Rules[*schedulingv1.PriorityClass] {
	return define.Rules[*schedulingv1.PriorityClass]{
		Default: func(c *schedulingv1.PriorityClass) {
			define.SetDefaultPtr(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
		},
		Validate: validatePriorityClass,
		ValidateUpdate: func(c, old *schedulingv1.PriorityClass) field.ErrorList {
			var errs field.ErrorList
			if c.Value != old.Value {
				errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
			}
			return append(errs, validate.Unchanged(field.NewPath("preemptionPolicy"), c.PreemptionPolicy, old.PreemptionPolicy)...)
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
	return append(errs, validate.OneOf(field.NewPath("preemptionPolicy"), define.ValueOr(c.PreemptionPolicy, ""), corev1.PreemptLowerPriority, corev1.PreemptNever)...)
}
