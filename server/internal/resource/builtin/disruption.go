package builtin

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func podDisruptionBudgetRules() rules[*policyv1.PodDisruptionBudget] {
	return rules[*policyv1.PodDisruptionBudget]{
		Validate: func(b *policyv1.PodDisruptionBudget) field.ErrorList {
			var errs field.ErrorList
			if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
				errs = append(errs, field.Invalid(specPath, b.Spec, "minAvailable and maxUnavailable cannot be both set"))
			}
			errs = append(errs, countOrPercent(specPath.Child("minAvailable"), b.Spec.MinAvailable)...)
			errs = append(errs, countOrPercent(specPath.Child("maxUnavailable"), b.Spec.MaxUnavailable)...)
			errs = append(errs, notAll(specPath.Child("minAvailable"), b.Spec.MinAvailable)...)
			errs = append(errs, notAll(specPath.Child("maxUnavailable"), b.Spec.MaxUnavailable)...)
			errs = append(errs, labelSelector(specPath.Child("selector"), b.Spec.Selector)...)
			if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil {
				errs = append(errs, oneOf(specPath.Child("unhealthyPodEvictionPolicy"), *p, policyv1.IfHealthyBudget, policyv1.AlwaysAllow)...)
			}
			return errs
		},
	}
}
