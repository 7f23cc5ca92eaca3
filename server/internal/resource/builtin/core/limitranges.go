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
		errs = append(errs, validateOrderOf(path, name, limitsOf(item, defaults, requests, name))...)
	}
	return errs
}

// limits are the amounts of one resource in an item, nil where it has none. They are copies: to compare
// an amount may change how it is held, and with that what its value overflows to.
type limits struct{ least, most, standard, request, ratio *apiresource.Quantity }

func limitsOf(item *corev1.LimitRangeItem, defaults, requests corev1.ResourceList, name corev1.ResourceName) limits {
	amount := func(list corev1.ResourceList) *apiresource.Quantity {
		if q, ok := list[name]; ok {
			return &q
		}
		return nil
	}
	return limits{amount(item.Min), amount(item.Max), amount(defaults), amount(requests), amount(item.MaxLimitRequestRatio)}
}

func validateOrderOf(path *field.Path, name corev1.ResourceName, l limits) field.ErrorList {
	var errs field.ErrorList
	// what is complained about at a list, with an amount of it or of another one
	order := func(low, high *apiresource.Quantity, at string, shown *apiresource.Quantity, lowName, highName string) {
		if low != nil && high != nil && low.Cmp(*high) > 0 {
			errs = append(errs, field.Invalid(path.Child(at).Key(string(name)), shown.String(),
				fmt.Sprintf("%s value %s is greater than %s value %s", lowName, low.String(), highName, high.String())))
		}
	}
	order(l.least, l.most, "min", l.least, "min", "max")
	order(l.least, l.request, "defaultRequest", l.request, "min", "default request")
	order(l.request, l.most, "defaultRequest", l.request, "default request", "max")
	order(l.request, l.standard, "defaultRequest", l.request, "default request", "default limit")
	order(l.least, l.standard, "default", l.least, "min", "default")
	order(l.standard, l.most, "default", l.most, "default", "max")
	if l.ratio != nil {
		errs = append(errs, validateRatio(path.Child("maxLimitRequestRatio").Key(string(name)), l)...)
	}
	if l.standard != nil && l.request != nil && !podspec.Overcommits(name) && l.standard.Cmp(*l.request) != 0 {
		errs = append(errs, field.Invalid(path.Child("defaultRequest").Key(string(name)), l.request.String(),
			fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", l.standard.String(), l.request.String(), name)))
	}
	return errs
}

// validateRatio: a limit is at least its request, and no range allows more than its ends are apart.
func validateRatio(path *field.Path, l limits) field.ErrorList {
	var errs field.ErrorList
	if l.ratio.Cmp(*apiresource.NewQuantity(1, apiresource.DecimalSI)) < 0 {
		errs = append(errs, field.Invalid(path, l.ratio.String(), fmt.Sprintf("ratio %s is less than 1", l.ratio.String())))
	}
	if l.least == nil || l.most == nil {
		return errs
	}
	if widest, wanted := quotient(l.most, l.least, l.ratio); wanted > widest {
		errs = append(errs, field.Invalid(path, l.ratio.String(), fmt.Sprintf("ratio %s is greater than max/min = %f", l.ratio.String(), widest)))
	}
	return errs
}

// quotient divides two amounts, and returns a ratio beside it. They are counted in thousandths, but
// for numbers that become too large then.
func quotient(most, least, ratio *apiresource.Quantity) (quotient, value float64) {
	if ratio.Value() < apiresource.MaxMilliValue && least.Value() < apiresource.MaxMilliValue && most.Value() < apiresource.MaxMilliValue {
		return float64(most.MilliValue()) / float64(least.MilliValue()), float64(ratio.MilliValue()) / 1000
	}
	return float64(most.Value()) / float64(least.Value()), float64(ratio.Value())
}
