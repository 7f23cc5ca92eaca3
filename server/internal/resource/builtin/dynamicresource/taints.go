package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func deviceTaintRuleRules() define.Rules[*resourcev1.DeviceTaintRule] {
	taint := validate.SpecPath.Child("taint")
	return define.Rules[*resourcev1.DeviceTaintRule]{
		DefaultTimes: func(r *resourcev1.DeviceTaintRule, now metav1.Time) {
			define.SetDefaultPtr(&r.Spec.Taint.TimeAdded, now)
		},
		RenewTimes: renewTaint,
		ValidateCreate: func(r *resourcev1.DeviceTaintRule) field.ErrorList {
			return append(validateTaintRule(&r.Spec), tagsOfTaint(taint, r.Spec.Taint)...)
		},
		// An effect that stays may be one of a later version.
		ValidateUpdate: func(r, old *resourcev1.DeviceTaintRule) field.ErrorList {
			errs := validateTaintRule(&r.Spec)
			if r.Spec.Taint.Effect == old.Spec.Taint.Effect {
				return errs
			}
			return append(errs, tagsOfTaint(taint, r.Spec.Taint)...)
		},
		ValidateStatus: func(r, _ *resourcev1.DeviceTaintRule) field.ErrorList {
			at := field.NewPath("status", "conditions")
			errs := metavalidation.ValidateConditions(r.Status.Conditions, at)
			return append(errs, tooMany(at, r.Status.Conditions, resourcev1.DeviceTaintRuleStatusMaxConditions)...)
		},
	}
}

// renewTaint: pods tolerate an effect for a while since it began, unless the client says that it began at another time.
func renewTaint(r, old *resourcev1.DeviceTaintRule, now metav1.Time) {
	if taint, before := &r.Spec.Taint, &old.Spec.Taint; taint.Effect != before.Effect && taint.TimeAdded.Equal(before.TimeAdded) {
		taint.TimeAdded = &now
	}
}

func validateTaintRule(spec *resourcev1.DeviceTaintRuleSpec) field.ErrorList {
	var errs field.ErrorList
	if selector, at := spec.DeviceSelector, validate.SpecPath.Child("deviceSelector"); selector != nil {
		if selector.Driver != nil {
			errs = append(errs, validateDriver(at.Child("driver"), *selector.Driver)...)
		}
		if selector.Pool != nil {
			errs = append(errs, validatePool(at.Child("pool"), *selector.Pool)...)
		}
		if selector.Device != nil {
			errs = append(errs, validateLabel(at.Child("device"), *selector.Device)...)
		}
	}
	return append(errs, validateTaint(validate.SpecPath.Child("taint"), spec.Taint)...)
}

func validateTaint(at *field.Path, t resourcev1.DeviceTaint) field.ErrorList {
	errs := metavalidation.ValidateLabelName(t.Key, at.Child("key"))
	return append(errs, validate.Invalid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
}

func tagsOfTaint(at *field.Path, t resourcev1.DeviceTaint) field.ErrorList {
	return append(validate.Required(at.Child("effect"), string(t.Effect)), knownEffect(at.Child("effect"), t.Effect)...)
}

// knownEffect checks the effect of a taint, or of the taints that are tolerated, unless there is none.
func knownEffect(at *field.Path, effect resourcev1.DeviceTaintEffect) field.ErrorList {
	if effect == "" {
		return nil
	}
	return validate.Supported(at, effect, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone)
}

func validateToleration(at *field.Path, t resourcev1.DeviceToleration) field.ErrorList {
	value := at.Child("value")
	switch {
	case t.Operator == resourcev1.DeviceTolerationOpExists && t.Value != "":
		return field.ErrorList{field.Invalid(value, t.Value, "must be empty for operator `Exists`")}
	case t.Operator == resourcev1.DeviceTolerationOpEqual:
		return validate.Invalid(value, t.Value, validation.IsValidLabelValue(t.Value))
	}
	return nil
}

func tagsOfToleration(at *field.Path, t resourcev1.DeviceToleration) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = labelKey.check(at.Child("key"), t.Key)
	}
	errs = append(errs, validate.OneOf(at.Child("operator"), t.Operator, resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists)...)
	return append(errs, knownEffect(at.Child("effect"), t.Effect)...)
}
