package read

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalidOptions is the 422 about options that do not go together.
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
	matchOption         = "resourceVersionMatch"
	initialEventsOption = "sendInitialEvents"
)

// validateList checks the options of a list against each other, as the table in the
// API reference on resource versions (and KEP-2340) says.
func validateList(o *metav1.ListOptions) error {
	var errs []*field.Error
	if match := o.ResourceVersionMatch; match != "" {
		if o.ResourceVersion == "" {
			errs = append(errs, fieldForbidden(matchOption, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
		}
		if o.Continue != "" {
			errs = append(errs, fieldForbidden(matchOption, "resourceVersionMatch is forbidden when continue is provided"))
		}
		if match != metav1.ResourceVersionMatchExact && match != metav1.ResourceVersionMatchNotOlderThan {
			errs = append(errs, field.NotSupported(field.NewPath(matchOption), match, []metav1.ResourceVersionMatch{
				metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan, ""}))
		}
		if match == metav1.ResourceVersionMatchExact && o.ResourceVersion == "0" {
			errs = append(errs, fieldForbidden(matchOption, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
		}
	}
	if o.SendInitialEvents != nil {
		errs = append(errs, fieldForbidden(initialEventsOption, "sendInitialEvents is forbidden for list"))
	}
	if len(errs) > 0 {
		return invalidOptions(errs...)
	}
	return nil
}

// validateWatch checks the options of a watch against each other, as KEP-3157 says.
func validateWatch(o *metav1.ListOptions) error {
	switch {
	case o.SendInitialEvents != nil && o.ResourceVersionMatch == "":
		return invalidOptions(fieldForbidden(matchOption, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	case o.ResourceVersionMatch == "":
		return nil
	case o.SendInitialEvents == nil:
		return invalidOptions(fieldForbidden(matchOption, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	case o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan:
		return invalidOptions(field.NotSupported(field.NewPath(matchOption), o.ResourceVersionMatch,
			[]metav1.ResourceVersionMatch{metav1.ResourceVersionMatchNotOlderThan}))
	}
	return nil
}
