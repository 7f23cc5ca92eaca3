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
			if holder := l.Spec.HolderIdentity; holder != nil && *holder == "" && l.Spec.Strategy != nil {
				errs = append(errs, field.Invalid(specPath.Child("holderIdentity"), *holder, "must not be empty"))
			}
			return errs
		},
	}
}
