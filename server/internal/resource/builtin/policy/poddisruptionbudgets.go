package policy

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func podDisruptionBudgetRules() define.Rules[*policyv1.PodDisruptionBudget] {
	return define.Rules[*policyv1.PodDisruptionBudget]{
		Validate: func(b *policyv1.PodDisruptionBudget) field.ErrorList {
			var errs field.ErrorList
			if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
				errs = append(errs, field.Invalid(validate.SpecPath, b.Spec, "minAvailable and maxUnavailable cannot be both set"))
			}
			errs = append(errs, validate.CountOrPercent(validate.SpecPath.Child("minAvailable"), b.Spec.MinAvailable)...)
			errs = append(errs, validate.CountOrPercent(validate.SpecPath.Child("maxUnavailable"), b.Spec.MaxUnavailable)...)
			errs = append(errs, validate.PercentAtMost100(validate.SpecPath.Child("minAvailable"), b.Spec.MinAvailable)...)
			errs = append(errs, validate.PercentAtMost100(validate.SpecPath.Child("maxUnavailable"), b.Spec.MaxUnavailable)...)
			errs = append(errs, validate.LabelSelector(validate.SpecPath.Child("selector"), b.Spec.Selector)...)
			if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil {
				errs = append(errs, validate.Supported(validate.SpecPath.Child("unhealthyPodEvictionPolicy"), *p, policyv1.IfHealthyBudget, policyv1.AlwaysAllow)...)
			}
			return errs
		},
	}
}
