package policy

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func podDisruptionBudgetRules() define.Rules[*policyv1.PodDisruptionBudget] {
	return define.Rules[*policyv1.PodDisruptionBudget]{
		PrepareForCreate: func(b *policyv1.PodDisruptionBudget) { dropBetaLabel(b.Spec.Selector) },
		PrepareForUpdate: func(b, old *policyv1.PodDisruptionBudget) {
			if !equality.Semantic.DeepEqual(b.Spec.Selector, old.Spec.Selector) {
				dropBetaLabel(b.Spec.Selector)
			}
		},
		ValidateStatus: validateBudgetStatus,
		Validate: func(b *policyv1.PodDisruptionBudget) field.ErrorList {
			var errs field.ErrorList
			if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
				errs = append(errs, field.Invalid(validate.SpecPath, b.Spec, "minAvailable and maxUnavailable cannot be both set"))
			}
			errs = append(errs, validate.CountOrPercent(validate.SpecPath.Child("minAvailable"), b.Spec.MinAvailable)...)
			errs = append(errs, validate.PercentAtMost100(validate.SpecPath.Child("minAvailable"), b.Spec.MinAvailable)...)
			errs = append(errs, validate.CountOrPercent(validate.SpecPath.Child("maxUnavailable"), b.Spec.MaxUnavailable)...)
			errs = append(errs, validate.PercentAtMost100(validate.SpecPath.Child("maxUnavailable"), b.Spec.MaxUnavailable)...)
			errs = append(errs, validate.LabelSelector(validate.SpecPath.Child("selector"), b.Spec.Selector)...)
			if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil {
				errs = append(errs, validate.Supported(validate.SpecPath.Child("unhealthyPodEvictionPolicy"), *p, policyv1.IfHealthyBudget, policyv1.AlwaysAllow)...)
			}
			return errs
		},
	}
}

// betaLabel is by what policy/v1beta1 tells an empty selector, which it takes for none, from one that
// selects everything.
const betaLabel = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

// dropBetaLabel takes the label of policy/v1beta1 from a selector, unless it is all that there is.
func dropBetaLabel(selector *metav1.LabelSelector) {
	none := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: betaLabel, Operator: metav1.LabelSelectorOpExists}}}
	isBeta := func(r metav1.LabelSelectorRequirement) bool { return r.Key == betaLabel }
	if selector == nil || !slices.ContainsFunc(selector.MatchExpressions, isBeta) || equality.Semantic.DeepEqual(selector, none) {
		return
	}
	// A copy: the list may be that of another object, too.
	selector.MatchExpressions = slices.DeleteFunc(slices.Clone(selector.MatchExpressions), isBeta)
}

func validateBudgetStatus(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	s, at := &b.Status, field.NewPath("status")
	errs := metavalidation.ValidateConditions(s.Conditions, at.Child("conditions"))
	errs = append(errs, validate.NotNegative(at.Child("disruptionsAllowed"), &s.DisruptionsAllowed)...)
	errs = append(errs, validate.NotNegative(at.Child("currentHealthy"), &s.CurrentHealthy)...)
	errs = append(errs, validate.NotNegative(at.Child("desiredHealthy"), &s.DesiredHealthy)...)
	return append(errs, validate.NotNegative(at.Child("expectedPods"), &s.ExpectedPods)...)
}
