package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func validateLimitRange(l *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[corev1.LimitType]()
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], validate.SpecPath.Child("limits").Index(i)
		errs = append(errs, validateLimitType(at.Child("type"), item.Type)...)
		if types.Has(item.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		types.Insert(item.Type)
		errs = append(errs, validateLimitNames(at, item)...)
		errs = append(errs, validateLimitOrder(at, item)...)
	}
	return errs
}

func validateLimitType(path *field.Path, limited corev1.LimitType) field.ErrorList {
	name := string(limited)
	if messages := validation.IsQualifiedName(name); len(messages) > 0 {
		return validate.Invalid(path, limited, messages)
	}
	switch {
	case strings.Contains(name, "/"), limited == corev1.LimitTypePod, limited == corev1.LimitTypeContainer, limited == corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	return field.ErrorList{field.Invalid(path, limited, "must be a standard limit type or fully qualified")}
}

// validateLimitNames checks the names of resources. Pods have no defaults of their own, and claims
// have a size.
func validateLimitNames(path *field.Path, item *corev1.LimitRangeItem) field.ErrorList {
	rule := podspec.QualifiedResource
	if item.Type == corev1.LimitTypePod || item.Type == corev1.LimitTypeContainer {
		rule = podspec.ContainerResource
	}
	var errs field.ErrorList
	check := func(list string, amounts corev1.ResourceList) {
		for _, name := range validate.SortedNames(amounts) {
			errs = append(errs, rule(path.Child(list).Key(string(name)), name)...)
		}
	}
	check("max", item.Max)
	check("min", item.Min)
	if item.Type == corev1.LimitTypePod {
		if len(item.Default) > 0 {
			errs = append(errs, field.Forbidden(path.Child("default"), "may not be specified when `type` is 'Pod'"))
		}
		if len(item.DefaultRequest) > 0 {
			errs = append(errs, field.Forbidden(path.Child("defaultRequest"), "may not be specified when `type` is 'Pod'"))
		}
	} else {
		check("default", item.Default)
		check("defaultRequest", item.DefaultRequest)
	}
	if item.Type == corev1.LimitTypePersistentVolumeClaim {
		_, least := item.Min[corev1.ResourceStorage]
		_, most := item.Max[corev1.ResourceStorage]
		if !least && !most {
			errs = append(errs, field.Required(path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	check("maxLimitRequestRatio", item.MaxLimitRequestRatio)
	return errs
}

// validateLimitOrder: minimum, default request, default and maximum of each resource are in order.
func validateLimitOrder(path *field.Path, item *corev1.LimitRangeItem) field.ErrorList {
	defaults, requests := item.Default, item.DefaultRequest
	if item.Type == corev1.LimitTypePod {
		defaults, requests = nil, nil
	}
	all := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{item.Min, item.Max, defaults, requests, item.MaxLimitRequestRatio} {
		for name := range list {
			all[name] = apiresource.Quantity{}
		}
	}
	var errs field.ErrorList
	for _, name := range validate.SortedNames(all) {
		// what is complained about at a list, with a value of it or of another one
		order := func(low, high corev1.ResourceList, at string, value corev1.ResourceList, lowName, highName string) {
			least, ok := low[name]
			most, both := high[name]
			if ok && both && least.Cmp(most) > 0 {
				shown := value[name]
				errs = append(errs, field.Invalid(path.Child(at).Key(string(name)), shown.String(),
					fmt.Sprintf("%s value %s is greater than %s value %s", lowName, least.String(), highName, most.String())))
			}
		}
		order(item.Min, item.Max, "min", item.Min, "min", "max")
		order(item.Min, requests, "defaultRequest", requests, "min", "default request")
		order(requests, item.Max, "defaultRequest", requests, "default request", "max")
		order(requests, defaults, "defaultRequest", requests, "default request", "default limit")
		order(item.Min, defaults, "default", item.Min, "min", "default")
		order(defaults, item.Max, "default", item.Max, "default", "max")
		errs = append(errs, validateRatio(path.Child("maxLimitRequestRatio").Key(string(name)), name, item)...)
		limit, limited := defaults[name]
		request, requested := requests[name]
		if limited && requested && !podspec.Overcommits(name) && limit.Cmp(request) != 0 {
			errs = append(errs, field.Invalid(path.Child("defaultRequest").Key(string(name)), request.String(),
				fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit.String(), request.String(), name)))
		}
	}
	return errs
}

// validateRatio: a limit is at least its request, and no range allows more than its ends are apart.
func validateRatio(path *field.Path, name corev1.ResourceName, item *corev1.LimitRangeItem) field.ErrorList {
	ratio, ok := item.MaxLimitRequestRatio[name]
	if !ok {
		return nil
	}
	var errs field.ErrorList
	if ratio.Cmp(*apiresource.NewQuantity(1, apiresource.DecimalSI)) < 0 {
		errs = append(errs, field.Invalid(path, ratio.String(), fmt.Sprintf("ratio %s is less than 1", ratio.String())))
	}
	least, bounded := item.Min[name]
	most, both := item.Max[name]
	if !bounded || !both {
		return errs
	}
	if widest, wanted := quotient(most, least, ratio); wanted > widest {
		errs = append(errs, field.Invalid(path, ratio.String(), fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), widest)))
	}
	return errs
}

// quotient divides two amounts, and returns a ratio beside it. They are counted in thousandths, but
// for numbers that become too large then.
func quotient(most, least, ratio apiresource.Quantity) (quotient, value float64) {
	if ratio.Value() < apiresource.MaxMilliValue && least.Value() < apiresource.MaxMilliValue && most.Value() < apiresource.MaxMilliValue {
		return float64(most.MilliValue()) / float64(least.MilliValue()), float64(ratio.MilliValue()) / 1000
	}
	return float64(most.Value()) / float64(least.Value()), float64(ratio.Value())
}
