package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func resourceQuotaRules() rules[*corev1.ResourceQuota] {
	return rules[*corev1.ResourceQuota]{
		Validate: func(q *corev1.ResourceQuota) field.ErrorList {
			return validateQuantities(specPath.Child("hard"), q.Spec.Hard)
		},
		ValidateUpdate: func(q, old *corev1.ResourceQuota) field.ErrorList {
			return unchanged(specPath.Child("scopes"), q.Spec.Scopes, old.Spec.Scopes)
		},
	}
}

func limitRangeRules() rules[*corev1.LimitRange] {
	return rules[*corev1.LimitRange]{
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
	for i, item := range l.Spec.Limits {
		at := specPath.Child("limits").Index(i)
		errs = append(errs, required(at.Child("type"), string(item.Type))...)
		errs = append(errs, notAbove(at, "min", item.Min, "max", item.Max)...)
		errs = append(errs, notAbove(at, "defaultRequest", item.DefaultRequest, "default", item.Default)...)
		errs = append(errs, notAbove(at, "default", item.Default, "max", item.Max)...)
		errs = append(errs, notAbove(at, "min", item.Min, "default", item.Default)...)
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
