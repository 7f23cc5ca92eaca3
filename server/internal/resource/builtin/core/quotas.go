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
			return validate.Unchanged(validate.SpecPath.Child("scopes"), q.Spec.Scopes, old.Spec.Scopes)
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
	errs := validate.Quantities(hard, q.Spec.Hard)
	for _, name := range validate.SortedNames(q.Spec.Hard) {
		if text := string(name); !strings.Contains(text, "/") && !quotaNames.Has(text) &&
			!strings.HasPrefix(text, "requests.hugepages-") && !podspec.IsHugePages(name) {
			errs = append(errs, field.Invalid(hard.Key(text), name, "must be a standard resource for quota"))
		}
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

func validateLimitRange(l *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[corev1.LimitType]()
	for i, item := range l.Spec.Limits {
		at := validate.SpecPath.Child("limits").Index(i)
		errs = append(errs, validate.Required(at.Child("type"), string(item.Type))...)
		if types.Has(item.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		types.Insert(item.Type)
		errs = append(errs, validateLimitsOfType(at, &item)...)
		errs = append(errs, notAbove(at, "min", item.Min, "max", item.Max)...)
		errs = append(errs, notAbove(at, "defaultRequest", item.DefaultRequest, "default", item.Default)...)
		errs = append(errs, notAbove(at, "default", item.Default, "max", item.Max)...)
		errs = append(errs, notAbove(at, "min", item.Min, "default", item.Default)...)
	}
	return errs
}

// validateLimitsOfType: pods have no defaults of their own, and claims have a
// size.
func validateLimitsOfType(path *field.Path, item *corev1.LimitRangeItem) field.ErrorList {
	var errs field.ErrorList
	switch item.Type {
	case corev1.LimitTypePod:
		if len(item.Default) > 0 {
			errs = append(errs, field.Forbidden(path.Child("default"), "may not be specified when `type` is 'Pod'"))
		}
		if len(item.DefaultRequest) > 0 {
			errs = append(errs, field.Forbidden(path.Child("defaultRequest"), "may not be specified when `type` is 'Pod'"))
		}
	case corev1.LimitTypePersistentVolumeClaim:
		_, least := item.Min[corev1.ResourceStorage]
		_, most := item.Max[corev1.ResourceStorage]
		if !least && !most {
			errs = append(errs, field.Required(path, "either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	return errs
}

// notAbove complains about amounts of one list that are above those of
// another.
func notAbove(path *field.Path, lowName string, low corev1.ResourceList, highName string, high corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for name, least := range low {
		if most, ok := high[name]; ok && least.Cmp(most) > 0 {
			errs = append(errs, field.Invalid(path.Child(lowName).Key(string(name)), least.String(),
				lowName+" value "+least.String()+" is greater than "+highName+" value "+most.String()))
		}
	}
	return errs
}
