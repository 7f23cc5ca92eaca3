package read

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalidOptions is the 422 about options that do not go together; nil if nothing is wrong.
func invalidOptions(errs ...*field.Error) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", errs)
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
	return invalidOptions(errs...)
}

// validateWatch checks the options of a watch against each other, as KEP-3157 says.
func validateWatch(o *metav1.ListOptions) error {
	const notOlderThan = metav1.ResourceVersionMatchNotOlderThan
	var errs []*field.Error
	match := o.ResourceVersionMatch
	if o.SendInitialEvents != nil && match != notOlderThan {
		errs = append(errs, fieldForbidden(matchOption, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	}
	if match != "" {
		if o.SendInitialEvents == nil {
			errs = append(errs, fieldForbidden(matchOption, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
		}
		if match != notOlderThan {
			errs = append(errs, field.NotSupported(field.NewPath(matchOption), match, []metav1.ResourceVersionMatch{notOlderThan}))
		}
	}
	if o.Continue != "" && (match != "" || beginsWithState(o)) {
		errs = append(errs, fieldForbidden(matchOption, "resourceVersionMatch is forbidden when continue is provided"))
	}
	return invalidOptions(errs...)
}

// beginsWithState reports whether a watch does not say whether it begins with the state that there is,
// and does: Kubernetes takes it for one that asks for initial events.
func beginsWithState(o *metav1.ListOptions) bool {
	return o.SendInitialEvents == nil && o.ResourceVersionMatch == "" && (o.ResourceVersion == "" || o.ResourceVersion == "0")
}
