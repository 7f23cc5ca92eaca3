package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SortedNames returns the names of a resource list in order, so that errors come
// in the same order every time.
func SortedNames(list corev1.ResourceList) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Quantities checks a list of amounts by resource name.
func Quantities(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range SortedNames(list) {
		at := path.Key(string(name))
		errs = append(errs, Invalid(at, name, validation.IsQualifiedName(string(name)))...)
		errs = append(errs, NotNegativeQuantity(at, list[name])...)
	}
	return errs
}

// NotNegativeQuantity checks an amount that may be zero but not less.
func NotNegativeQuantity(path *field.Path, amount apiresource.Quantity) field.ErrorList {
	if amount.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, amount.String(), "must be greater than or equal to 0")}
	}
	return nil
}

// PositiveQuantity checks an amount that must be above zero.
func PositiveQuantity(path *field.Path, amount apiresource.Quantity) field.ErrorList {
	if amount.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, amount.String(), "must be greater than zero")}
	}
	return nil
}
