// Package validate holds the checks that the validation of several kinds
// shares. A check takes the path of a field and its value, and returns what is
// wrong with it in the words of kube-apiserver.
package validate

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SpecPath is the path of an object's spec.
var SpecPath = field.NewPath("spec")

// Immutable is the message about a change of a field that cannot change.
const Immutable = "field is immutable"

// Invalid turns messages of a syntax check into errors about one value.
func Invalid(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// Required complains about an empty string.
func Required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// RequiredSyntax complains about an empty string and checks the syntax of
// another one.
func RequiredSyntax(path *field.Path, value string, syntax func(string) []string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return Invalid(path, value, syntax(value))
}

// OneOf complains about a value that is not in the enumeration. The empty
// value is complained about as missing.
func OneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return Supported(path, value, allowed...)
}

// Supported is OneOf for a field whose empty value is complained about as any other.
func Supported[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, slices.Sorted(slices.Values(allowed)))} // as Kubernetes lists them
}

// SupportedInOrder is Supported for the few enumerations that kube-apiserver lists in an order of their own.
func SupportedInOrder[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// OneOfInOrder is OneOf for the few enumerations that kube-apiserver lists in an order of their own.
func OneOfInOrder[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value != "" && !slices.Contains(allowed, value) {
		return field.ErrorList{field.NotSupported(path, value, allowed)}
	}
	return OneOf(path, value, allowed...)
}

// AnyName is the rule for the names of those kinds whose names may be whatever can be part of a
// path, or are checked with the rest of the object.
func AnyName(string, bool) []string { return nil }

// LongName checks the name of a new object of a kind whose type has that rule in its tags: in words
// of its own, it is that of a DNS subdomain.
func LongName(obj metav1.Object) field.ErrorList {
	if obj.GetName() == "" { // the registry complains about a missing name
		return nil
	}
	return Invalid(field.NewPath("metadata", "name"), obj.GetName(), content.IsDNS1123Subdomain(obj.GetName()))
}

// NotNegative complains about a number below zero. A missing number is fine.
func NotNegative[N int32 | int64](path *field.Path, value *N) field.ErrorList {
	if value != nil && *value < 0 {
		return field.ErrorList{field.Invalid(path, *value, "must be greater than or equal to 0")}
	}
	return nil
}

// AtLeast complains about a number that is too small. A missing number is fine.
func AtLeast[N int32 | int64](path *field.Path, value *N, least N) field.ErrorList {
	if value != nil && *value < least {
		return field.ErrorList{field.Invalid(path, *value, validation.InclusiveRangeError(int(least), 1<<31-1))}
	}
	return nil
}

// Unchanged complains about a difference in a field that may not change.
func Unchanged(path *field.Path, now, before any) field.ErrorList {
	if !equality.Semantic.DeepEqual(now, before) {
		return field.ErrorList{field.Invalid(path, now, Immutable)}
	}
	return nil
}

// UnchangedUnsaid is Unchanged for the fields of which kube-apiserver, which has the rule in the
// tags of the type, does not say the value.
func UnchangedUnsaid(path *field.Path, now, before any) field.ErrorList {
	if !equality.Semantic.DeepEqual(now, before) {
		return field.ErrorList{field.Invalid(path, nil, Immutable)}
	}
	return nil
}

// PortNumber complains about a number that is not a valid port.
func PortNumber(path *field.Path, port int32) field.ErrorList {
	return Invalid(path, port, validation.IsValidPortNum(int(port)))
}

// PortReference complains about a value that is neither a port number nor a
// port name.
func PortReference(path *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return Invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return PortNumber(path, port.IntVal)
}

// CountOrPercent complains about a value that is neither a percentage nor a
// number of at least 0.
func CountOrPercent(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	switch {
	case value == nil:
		return nil
	case value.Type == intstr.String:
		return Invalid(path, value.StrVal, validation.IsValidPercent(value.StrVal))
	case value.IntVal < 0:
		return field.ErrorList{field.Invalid(path, value.IntVal, "must be greater than or equal to 0")}
	}
	return nil
}

// PercentAtMost100 complains about a percentage above 100.
func PercentAtMost100(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	if value == nil || value.Type != intstr.String || len(validation.IsValidPercent(value.StrVal)) > 0 {
		return nil
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%")); err != nil || n > 100 {
		return field.ErrorList{field.Invalid(path, value.StrVal, "must not be greater than 100%")}
	}
	return nil
}

// IsZero reports whether a count or percentage is 0 or 0%. What is neither counts as 0, as in Kubernetes.
func IsZero(value *intstr.IntOrString) bool {
	if value == nil {
		return false
	}
	if value.Type == intstr.String && len(validation.IsValidPercent(value.StrVal)) == 0 {
		n, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
		return err == nil && n == 0
	}
	return value.IntValue() == 0
}

// LabelSelector checks the syntax of a selector.
func LabelSelector(path *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

// WorkloadSelector checks the selector of a workload, which is required and not empty, against the
// labels of its pod template. The texts are what is wrong with an empty selector and with one that
// cannot be used; of the latter, kube-apiserver does not look at the template, and ok is false.
func WorkloadSelector(selector *metav1.LabelSelector, templateLabels map[string]string, empty, unusable string) (errs field.ErrorList, ok bool) {
	path := SpecPath.Child("selector")
	if selector == nil {
		errs = append(errs, field.Required(path, ""))
	} else {
		errs = append(errs, LabelSelector(path, selector)...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path, selector, empty))
		}
	}
	matches, err := selects(selector, templateLabels)
	if err != nil {
		return append(errs, field.Invalid(path, selector, unusable)), false
	}
	if !matches {
		errs = append(errs, OtherLabels(SpecPath.Child("template"), templateLabels))
	}
	return errs, true
}

// Selects checks a selector that need not be there against the labels of a pod template. One that
// cannot be used is left to LabelSelector.
func Selects(selector *metav1.LabelSelector, templateLabels map[string]string) field.ErrorList {
	if matches, err := selects(selector, templateLabels); err != nil || matches {
		return nil
	}
	return field.ErrorList{OtherLabels(SpecPath.Child("template"), templateLabels)}
}

// selects reports whether a selector selects labels. One that is nil selects nothing.
func selects(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, err
	}
	return compiled.Matches(labels.Set(set)), nil
}

// OtherLabels is the error about a template whose labels its workload does not select.
func OtherLabels(template *field.Path, templateLabels map[string]string) *field.Error {
	return field.Invalid(template.Child("metadata", "labels"), templateLabels, "`selector` does not match template `labels`")
}
