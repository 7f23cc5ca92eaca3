package apiserver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalidOptions is the 422 about query parameters that do not go together.
func invalidOptions(errs ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", errs)
}

func fieldInvalid(name string, value any, detail string) *field.Error {
	return field.Invalid(field.NewPath(name), value, detail)
}

func fieldForbidden(name, detail string) *field.Error {
	return field.Forbidden(field.NewPath(name), detail)
}

const (
	matchParameter   = "resourceVersionMatch"
	initialParameter = "sendInitialEvents"
)

// validateList checks the parameters of a list against each other: the grid
// of KEP-2340 and the API reference on resource versions.
func (o *listOptions) validateList() error {
	if o.sendInitialEvents != nil {
		return invalidOptions(fieldForbidden(initialParameter, "sendInitialEvents is forbidden for list"))
	}
	switch {
	case o.match == "":
		return nil
	case o.token != "":
		return invalidOptions(fieldForbidden(matchParameter, "resourceVersionMatch is forbidden when continue is provided"))
	case o.version == "":
		return invalidOptions(fieldForbidden(matchParameter, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
	case o.match != metav1.ResourceVersionMatchExact && o.match != metav1.ResourceVersionMatchNotOlderThan:
		return invalidOptions(field.NotSupported(field.NewPath(matchParameter), o.match, []metav1.ResourceVersionMatch{
			metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan}))
	case o.match == metav1.ResourceVersionMatchExact && o.version == "0":
		return invalidOptions(fieldForbidden(matchParameter, `resourceVersionMatch "Exact" is forbidden for resourceVersion "0"`))
	}
	return nil
}

// validateWatch checks the parameters of a watch against each other: KEP-3157.
func (o *listOptions) validateWatch() error {
	switch {
	case o.sendInitialEvents != nil && o.match == "":
		return invalidOptions(fieldForbidden(matchParameter, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	case o.match == "":
		return nil
	case o.sendInitialEvents == nil:
		return invalidOptions(fieldForbidden(matchParameter, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	case o.match != metav1.ResourceVersionMatchNotOlderThan:
		return invalidOptions(field.NotSupported(field.NewPath(matchParameter), o.match,
			[]metav1.ResourceVersionMatch{metav1.ResourceVersionMatchNotOlderThan}))
	}
	return nil
}
