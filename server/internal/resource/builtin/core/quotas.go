package core

import (
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
		Validate: validateQuota,
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
	hard := validate.SpecPath.Child("hard")
	var errs field.ErrorList
	for _, name := range validate.SortedNames(q.Spec.Hard) {
		text, at := string(name), hard.Key(string(name))
		if !strings.HasPrefix(text, "requests.hugepages-") {
			errs = append(errs, podspec.QualifiedResource(at, name)...)
		}
		if !strings.Contains(text, "/") && !quotaNames.Has(text) && !strings.HasPrefix(text, "requests.hugepages-") && !podspec.IsHugePages(name) {
			errs = append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
		}
		errs = append(errs, podspec.ValidateAmount(at, name, q.Spec.Hard[name])...)
	}
	seen := sets.New[corev1.ResourceQuotaScope]()
	for _, scope := range q.Spec.Scopes {
		at := validate.SpecPath.Child("scopes")
		switch scope {
		case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
			corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
			corev1.ResourceQuotaScopeVolumeAttributesClass:
		default:
			errs = append(errs, field.Invalid(at, q.Spec.Scopes, "unsupported scope"))
		}
		seen.Insert(scope)
	}
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if seen.HasAll(pair[0], pair[1]) {
			errs = append(errs, field.Invalid(validate.SpecPath.Child("scopes"), q.Spec.Scopes, "conflicting scopes"))
		}
	}
	return errs
}

func limitRangeRules() define.Rules[*corev1.LimitRange] {
	return define.Rules[*corev1.LimitRange]{
		Default:  defaultLimitRange,
		Validate: validateLimitRange,
	}
}

// defaultLimitRange derives the defaults of containers: the default limit is
// the maximum, the default request is the default limit, or the minimum.
func defaultLimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
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
