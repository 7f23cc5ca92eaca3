package coordination

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func leaseRules() define.Rules[*coordinationv1.Lease] {
	return define.Rules[*coordinationv1.Lease]{Validate: validateLease}
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	if seconds := l.Spec.LeaseDurationSeconds; seconds != nil && *seconds <= 0 {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("leaseDurationSeconds"), *seconds, "must be greater than 0"))
	}
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("leaseTransitions"), l.Spec.LeaseTransitions)...)
	if l.Spec.Strategy != nil {
		errs = append(errs, validateStrategy(validate.SpecPath.Child("strategy"), *l.Spec.Strategy)...)
	}
	if define.ValueOr(l.Spec.PreferredHolder, "") != "" && define.ValueOr(l.Spec.Strategy, "") == "" {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}

// validateStrategy checks how the holder of a lease is elected (KEP-4355): names without a prefix are
// Kubernetes' own. The last part of the path is kube-apiserver's.
func validateStrategy(path *field.Path, strategy coordinationv1.CoordinatedLeaseStrategy) field.ErrorList {
	at := path.Child("strategy")
	if !strings.Contains(string(strategy), "/") {
		return validate.Supported(at, strategy, coordinationv1.OldestEmulationVersion)
	}
	return validate.Invalid(at, string(strategy), validation.IsQualifiedName(string(strategy)))
}
