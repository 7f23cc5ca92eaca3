package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func daemonSetRules() rules[*appsv1.DaemonSet] {
	return rules[*appsv1.DaemonSet]{
		Default:  defaultDaemonSet,
		Validate: validateDaemonSet,
		ValidateUpdate: func(d, old *appsv1.DaemonSet) field.ErrorList {
			return unchanged(specPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
		},
	}
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	defaultPodTemplate(&d.Spec.Template)
	setDefaultPtr(&d.Spec.RevisionHistoryLimit, revisionHistory)
	strategy := &d.Spec.UpdateStrategy
	setDefault(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setDefaultPtr(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefaultPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefaultPtr(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
}

func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	spec := &d.Spec
	errs := workloadSelector(spec.Selector, spec.Template.Labels)
	errs = append(errs, validateLastingTemplate(&spec.Template)...)
	errs = append(errs, notNegative(specPath.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, notNegative(specPath.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit)...)
	path := specPath.Child("updateStrategy")
	errs = append(errs, oneOf(path.Child("type"), spec.UpdateStrategy.Type,
		appsv1.OnDeleteDaemonSetStrategyType, appsv1.RollingUpdateDaemonSetStrategyType)...)
	rolling := spec.UpdateStrategy.RollingUpdate
	if rolling == nil || spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return errs
	}
	at := path.Child("rollingUpdate")
	errs = append(errs, countOrPercent(at.Child("maxUnavailable"), rolling.MaxUnavailable)...)
	errs = append(errs, countOrPercent(at.Child("maxSurge"), rolling.MaxSurge)...)
	errs = append(errs, notAll(at.Child("maxUnavailable"), rolling.MaxUnavailable)...)
	errs = append(errs, notAll(at.Child("maxSurge"), rolling.MaxSurge)...)
	switch surges, pauses := !isZero(rolling.MaxSurge), !isZero(rolling.MaxUnavailable); {
	case !surges && !pauses:
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	case surges && pauses:
		errs = append(errs, field.Invalid(at.Child("maxSurge"), rolling.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	}
	return errs
}

func controllerRevisionRules() rules[*appsv1.ControllerRevision] {
	path := field.NewPath("data")
	return rules[*appsv1.ControllerRevision]{
		Validate: func(c *appsv1.ControllerRevision) field.ErrorList {
			if len(c.Data.Raw) == 0 && c.Data.Object == nil {
				return field.ErrorList{field.Required(path, "data is mandatory")}
			}
			return notNegative(field.NewPath("revision"), &c.Revision)
		},
		ValidateUpdate: func(c, old *appsv1.ControllerRevision) field.ErrorList {
			return unchanged(path, c.Data, old.Data)
		},
	}
}
