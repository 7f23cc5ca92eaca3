package scheduling

import (
	"fmt"
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
		// Changes of what may change do not count.
		PrepareForCreate: func(c *schedulingv1.PriorityClass) { c.Generation = 1 },
		ValidateCreate:   validatePriorityClass,
		ValidateUpdate: func(c, old *schedulingv1.PriorityClass) field.ErrorList {
			var errs field.ErrorList
			if c.Value != old.Value {
				errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
			}
			return append(errs, validate.Unchanged(field.NewPath("preemptionPolicy"), c.PreemptionPolicy, old.PreemptionPolicy)...)
		},
		Undeletable: func(name string) string {
			if _, system := systemPriorities[name]; system {
				return "this is a system priority class and cannot be deleted"
			}
			return ""
		},
	}
}

func validatePriorityClass(c *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(c.Name, systemPrefix) {
		if wrong := wrongSystemClass(c); wrong != "" {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), "priority class names with '"+systemPrefix+"' prefix are reserved for system use only. error: "+wrong))
		}
	} else if c.Value > maxUserPriority {
		errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %d", maxUserPriority)))
	}
	if c.PreemptionPolicy == nil {
		return errs
	}
	return append(errs, validate.OneOfInOrder(field.NewPath("preemptionPolicy"), *c.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
}

// wrongSystemClass says why a class is none of those that every cluster has; "" if it is one.
func wrongSystemClass(c *schedulingv1.PriorityClass) string {
	switch value, known := systemPriorities[c.Name]; {
	case !known:
		return c.Name + " is not a known system priority class"
	case c.Value != value:
		return fmt.Sprintf("value of %s PriorityClass must be %d", c.Name, value)
	case c.GlobalDefault:
		return fmt.Sprintf("globalDefault of %s PriorityClass must be false", c.Name)
	}
	return ""
}
