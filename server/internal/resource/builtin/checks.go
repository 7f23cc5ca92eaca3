package builtin

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// specPath is where most complaints are.
var specPath = field.NewPath("spec")

const immutable = "field is immutable"

// setDefault sets *p to value if it has the zero value.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// setDefaultPtr points *p to value if it points nowhere.
func setDefaultPtr[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// valueOr returns *p, or fallback if p points nowhere.
func valueOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

// invalid turns messages of a syntax check into errors about one value.
func invalid(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// required complains about an empty string.
func required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// requiredSyntax complains about an empty string and checks the syntax of
// another one.
func requiredSyntax(path *field.Path, value string, syntax func(string) []string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return invalid(path, value, syntax(value))
}

// oneOf complains about a value that is not in the enumeration. The empty
// value is complained about as missing.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if !slices.Contains(allowed, value) {
		return field.ErrorList{field.NotSupported(path, value, allowed)}
	}
	return nil
}

// notNegative complains about a number below zero. A missing number is fine.
func notNegative[N int32 | int64](path *field.Path, value *N) field.ErrorList {
	if value != nil && *value < 0 {
		return field.ErrorList{field.Invalid(path, *value, "must be greater than or equal to 0")}
	}
	return nil
}

// atLeast complains about a number that is too small. A missing number is fine.
func atLeast[N int32 | int64](path *field.Path, value *N, least N) field.ErrorList {
	if value != nil && *value < least {
		return field.ErrorList{field.Invalid(path, *value, validation.InclusiveRangeError(int(least), 1<<31-1))}
	}
	return nil
}

// unchanged complains about a difference in a field that may not change.
func unchanged(path *field.Path, now, before any) field.ErrorList {
	if !equality.Semantic.DeepEqual(now, before) {
		return field.ErrorList{field.Invalid(path, now, immutable)}
	}
	return nil
}

// portNumber complains about a number that is no port.
func portNumber(path *field.Path, port int32) field.ErrorList {
	return invalid(path, port, validation.IsValidPortNum(int(port)))
}

// portReference complains about what is neither a port number nor a port
// name.
func portReference(path *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return portNumber(path, port.IntVal)
}

// countOrPercent complains about what is neither a number that is not
// negative nor a percentage.
func countOrPercent(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	switch {
	case value == nil:
		return nil
	case value.Type == intstr.String:
		return invalid(path, value.StrVal, validation.IsValidPercent(value.StrVal))
	case value.IntVal < 0:
		return field.ErrorList{field.Invalid(path, value.IntVal, "must be greater than or equal to 0")}
	}
	return nil
}

// notAll complains about a percentage above 100 of what cannot be more than
// all.
func notAll(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	if value == nil || value.Type != intstr.String || len(validation.IsValidPercent(value.StrVal)) > 0 {
		return nil
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%")); err != nil || n > 100 {
		return field.ErrorList{field.Invalid(path, value.StrVal, "must not be greater than 100%")}
	}
	return nil
}

// isZero reports whether a count or percentage is nothing.
func isZero(value *intstr.IntOrString) bool {
	if value == nil {
		return false
	}
	return value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && value.StrVal == "0%"
}

// labelSelector checks the syntax of a selector.
func labelSelector(path *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

// workloadSelector checks the selector of a workload against the labels of
// its pod template: required, not empty, and matching.
func workloadSelector(selector *metav1.LabelSelector, templateLabels map[string]string) field.ErrorList {
	path := specPath.Child("selector")
	if selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := labelSelector(path, selector)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, selector, "empty selector is invalid for a workload"))
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return append(errs, field.Invalid(path, selector, err.Error()))
	}
	if !compiled.Empty() && !compiled.Matches(labels.Set(templateLabels)) {
		errs = append(errs, field.Invalid(specPath.Child("template", "metadata", "labels"), templateLabels, "`selector` does not match template `labels`"))
	}
	return errs
}

// selectorString returns a selector in the form that a Scale carries.
func selectorString(selector *metav1.LabelSelector) (string, error) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", err
	}
	return compiled.String(), nil
}
