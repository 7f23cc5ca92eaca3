package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func leaseRules() rules[*coordinationv1.Lease] {
	return rules[*coordinationv1.Lease]{
		Validate: func(l *coordinationv1.Lease) field.ErrorList {
			errs := atLeast(specPath.Child("leaseDurationSeconds"), l.Spec.LeaseDurationSeconds, 1)
			errs = append(errs, notNegative(specPath.Child("leaseTransitions"), l.Spec.LeaseTransitions)...)
			if valueOr(l.Spec.PreferredHolder, "") != "" && valueOr(l.Spec.Strategy, "") == "" {
				errs = append(errs, field.Forbidden(specPath.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
			}
			return errs
		},
	}
}
