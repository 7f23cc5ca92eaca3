package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

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
