package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func resourceQuotaRules() define.Rules[*corev1.ResourceQuota] {
	return define.Rules[*corev1.ResourceQuota]{
		Default:        func(q *corev1.ResourceQuota) { podspec.RoundAmounts(q.Spec.Hard, q.Status.Hard, q.Status.Used) },
		Validate:       validateQuota,
		ValidateStatus: validateQuotaStatus,
		ValidateUpdate: func(q, old *corev1.ResourceQuota) field.ErrorList {
			if sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
				return nil
			}
			return field.ErrorList{field.Invalid(validate.SpecPath.Child("scopes"), q.Spec.Scopes, validate.Immutable)}
		},
	}
}

// quotaNames are the amounts without a domain that a quota can limit, besides
// requests. and limits. of anything and count/ of any kind.
var quotaNames = sets.New("cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
	"requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services",
	"replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers")

func validateQuota(q *corev1.ResourceQuota) field.ErrorList {
	errs := validateQuotaAmounts(validate.SpecPath.Child("hard"), q.Spec.Hard)
	errs = append(errs, validateQuotaScopes(q)...)
	if q.Spec.ScopeSelector != nil {
		errs = append(errs, validateScopeSelector(q)...)
	}
	return errs
}

func validateQuotaStatus(q, _ *corev1.ResourceQuota) field.ErrorList {
	status := field.NewPath("status")
	return append(validateQuotaAmounts(status.Child("hard"), q.Status.Hard), validateQuotaAmounts(status.Child("used"), q.Status.Used)...)
}

// validateQuotaAmounts checks amounts of what a quota can limit.
func validateQuotaAmounts(path *field.Path, amounts corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range validate.SortedNames(amounts) {
		text, at := string(name), path.Key(string(name))
		if !strings.HasPrefix(text, "requests.hugepages-") {
			errs = append(errs, podspec.QualifiedResource(at, name)...)
		}
		if !strings.Contains(text, "/") && !quotaNames.Has(text) && !strings.HasPrefix(text, "requests.hugepages-") && !podspec.IsHugePages(name) {
			errs = append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
		}
		errs = append(errs, podspec.ValidateAmount(at, name, amounts[name])...)
	}
	return errs
}

// computeAmounts are those of pods, without the number of them.
var computeAmounts = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
}

// amountsOfScope are the amounts that a scope can be about, by scope. Amounts of other names may
// have any scope.
var amountsOfScope = map[corev1.ResourceQuotaScope][]corev1.ResourceName{
	corev1.ResourceQuotaScopeTerminating:               append([]corev1.ResourceName{corev1.ResourcePods}, computeAmounts...),
	corev1.ResourceQuotaScopeNotTerminating:            append([]corev1.ResourceName{corev1.ResourcePods}, computeAmounts...),
	corev1.ResourceQuotaScopeNotBestEffort:             append([]corev1.ResourceName{corev1.ResourcePods}, computeAmounts...),
	corev1.ResourceQuotaScopePriorityClass:             append([]corev1.ResourceName{corev1.ResourcePods}, computeAmounts...),
	corev1.ResourceQuotaScopeCrossNamespacePodAffinity: append([]corev1.ResourceName{corev1.ResourcePods}, computeAmounts...),
	corev1.ResourceQuotaScopeBestEffort:                {corev1.ResourcePods},
	corev1.ResourceQuotaScopeVolumeAttributesClass:     {corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage},
}

// scopeCheck checks a list of scopes. A quota may name each scope, and of the amounts hugepages, ten thousands of times: that a
// scope does not fit an amount is said once, as the error names neither.
type scopeCheck struct {
	standard []corev1.ResourceName // amounts that not every scope can be about
	said     bool
}

func newScopeCheck(hard corev1.ResourceList) *scopeCheck {
	c := &scopeCheck{}
	for name := range hard {
		if quotaNames.Has(string(name)) || podspec.IsHugePages(name) || strings.HasPrefix(string(name), "requests.hugepages-") {
			c.standard = append(c.standard, name)
		}
	}
	return c
}

// validate checks a scope, at is where it stands and where the amounts are complained about.
func (c *scopeCheck) validate(scope corev1.ResourceQuotaScope, at, amounts *field.Path, value, whole any) field.ErrorList {
	can, known := amountsOfScope[scope]
	if !known {
		return field.ErrorList{field.Invalid(at, value, "unsupported scope")}
	}
	// A scope has few amounts, so that this ends soon, however many the quota has.
	if c.said || !slices.ContainsFunc(c.standard, func(name corev1.ResourceName) bool { return !slices.Contains(can, name) }) {
		return nil
	}
	c.said = true
	return field.ErrorList{field.Invalid(amounts, whole, "unsupported scope applied to resource")}
}

func validateQuotaScopes(q *corev1.ResourceQuota) field.ErrorList {
	at := validate.SpecPath.Child("scopes")
	var errs field.ErrorList
	check := newScopeCheck(q.Spec.Hard)
	for _, scope := range q.Spec.Scopes {
		errs = append(errs, check.validate(scope, at, at, q.Spec.Scopes, q.Spec.Scopes)...)
	}
	return append(errs, conflictingScopes(at, q.Spec.Scopes, sets.New(q.Spec.Scopes...))...)
}

// conflictingScopes complains about scopes that no pod has both of.
func conflictingScopes(at *field.Path, list []corev1.ResourceQuotaScope, scopes sets.Set[corev1.ResourceQuotaScope]) field.ErrorList {
	var errs field.ErrorList
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if scopes.HasAll(pair[0], pair[1]) {
			errs = append(errs, field.Invalid(at, list, "conflicting scopes"))
		}
	}
	return errs
}

// validateScopeSelector checks the scopes that have values. The errors do not say which of the
// expressions they are about, as in Kubernetes.
func validateScopeSelector(q *corev1.ResourceQuota) field.ErrorList {
	at := validate.SpecPath.Child("scopeSelector", "matchExpressions")
	var errs field.ErrorList
	scopes, check := sets.New[corev1.ResourceQuotaScope](), newScopeCheck(q.Spec.Hard)
	for _, e := range q.Spec.ScopeSelector.MatchExpressions {
		errs = append(errs, check.validate(e.ScopeName, at.Child("scopeName"), at, e.ScopeName, q.Spec.ScopeSelector)...)
		switch e.ScopeName {
		case corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass:
		default:
			if _, known := amountsOfScope[e.ScopeName]; known && e.Operator != corev1.ScopeSelectorOpExists {
				errs = append(errs, field.Invalid(at.Child("operator"), e.Operator,
					"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
			}
		}
		errs = append(errs, validateScopeValues(at, e)...)
		scopes.Insert(e.ScopeName)
	}
	return append(errs, conflictingScopes(at, q.Spec.Scopes, scopes)...)
}

// validateScopeValues checks that an expression has values if its operator needs some.
func validateScopeValues(at *field.Path, e corev1.ScopedResourceSelectorRequirement) field.ErrorList {
	switch e.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(e.Values) == 0 {
			return field.ErrorList{field.Required(at.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")}
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(e.Values) != 0 {
			return field.ErrorList{field.Invalid(at.Child("values"), e.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")}
		}
	default:
		return field.ErrorList{field.Invalid(at.Child("operator"), e.Operator, "not a valid selector operator")}
	}
	return nil
}

func limitRangeRules() define.Rules[*corev1.LimitRange] {
	return define.Rules[*corev1.LimitRange]{
		CompleteStored: func(l *corev1.LimitRange) { define.NoEmptyList(&l.Spec.Limits) },
		Default:        defaultLimitRange,
		Validate:       validateLimitRange,
	}
}

// defaultLimitRange derives the defaults of containers: the default limit is
// the maximum, the default request is the default limit, or the minimum.
func defaultLimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		podspec.RoundAmounts(item.Max, item.Min, item.Default, item.DefaultRequest, item.MaxLimitRequestRatio)
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		fill := func(list *corev1.ResourceList, from corev1.ResourceList) {
			for name, amount := range from {
				if _, ok := (*list)[name]; ok {
					continue
				}
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				(*list)[name] = amount.DeepCopy()
			}
		}
		fill(&item.Default, item.Max)
		fill(&item.DefaultRequest, item.Default)
		fill(&item.DefaultRequest, item.Min)
	}
}
