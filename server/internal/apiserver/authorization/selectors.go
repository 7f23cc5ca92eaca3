package authorization

import (
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateSelectors checks the selectors of a review, as Kubernetes does (KEP-4601): each
// is given in one of its two forms. An operator that is not known is no error, because a
// newer client may know it.
func validateSelectors(res *authorizationv1.ResourceAttributes) (errs field.ErrorList) {
	if res == nil {
		return nil
	}
	path := specPath.Child("resourceAttributes")
	if s := res.FieldSelector; s != nil {
		path := path.Child("fieldSelector")
		errs = append(errs, validateForms(path, s.RawSelector, len(s.Requirements))...)
		for i, r := range s.Requirements {
			errs = append(errs, metav1validation.ValidateFieldSelectorRequirement(r,
				metav1validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, path.Child("requirements").Index(i))...)
		}
	}
	if s := res.LabelSelector; s != nil {
		path := path.Child("labelSelector")
		errs = append(errs, validateForms(path, s.RawSelector, len(s.Requirements))...)
		for i, r := range s.Requirements {
			errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(r,
				metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, path.Child("requirements").Index(i))...)
		}
	}
	return errs
}

func validateForms(path *field.Path, raw string, requirements int) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(path.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path))}
	}
	return nil
}

// fieldSelectorOf returns the field selector of a review as a request has it. What of it
// is not understood is left out, and an error: the rest asks for more, not for less.
func fieldSelectorOf(s *authorizationv1.FieldSelectorAttributes) (string, error) {
	if s == nil {
		return "", nil
	}
	if s.RawSelector != "" {
		if _, err := fields.ParseSelector(s.RawSelector); err != nil {
			return "", err
		}
		return s.RawSelector, nil
	}
	var terms []fields.Selector
	var errs []error
	for _, r := range s.Requirements {
		term, err := fieldTerm(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		terms = append(terms, term)
	}
	return fields.AndSelectors(terms...).String(), errors.Join(errs...)
}

func fieldTerm(r metav1.FieldSelectorRequirement) (term fields.Selector, err error) {
	want := fields.Requirement{Field: r.Key, Operator: selection.Equals}
	switch {
	case len(r.Values) != 1:
		return nil, fmt.Errorf("the operator %s with %d values is not supported for fields", r.Operator, len(r.Values))
	case r.Operator == metav1.FieldSelectorOpIn:
		term = fields.OneTermEqualSelector(r.Key, r.Values[0])
	case r.Operator == metav1.FieldSelectorOpNotIn:
		term, want.Operator = fields.OneTermNotEqualSelector(r.Key, r.Values[0]), selection.NotEquals
	default:
		return nil, fmt.Errorf("the operator %s is not supported for fields", r.Operator)
	}
	want.Value = r.Values[0]
	// A key may have characters that mean something in the text of a selector.
	if parsed, err := fields.ParseSelector(term.String()); err != nil || !slices.Equal(parsed.Requirements(), fields.Requirements{want}) {
		return nil, fmt.Errorf("%q is no field", r.Key)
	}
	return term, nil
}

// labelSelectorOf is fieldSelectorOf for labels.
func labelSelectorOf(s *authorizationv1.LabelSelectorAttributes) (string, error) {
	if s == nil {
		return "", nil
	}
	if s.RawSelector != "" {
		if _, err := labels.Parse(s.RawSelector); err != nil {
			return "", err
		}
		return s.RawSelector, nil
	}
	var terms []labels.Requirement // added at once: each addition sorts all
	var errs []error
	for _, r := range s.Requirements {
		operator, ok := labelOperators[r.Operator]
		if !ok {
			errs = append(errs, fmt.Errorf("%q is not a valid label selector operator", r.Operator))
			continue
		}
		term, err := labels.NewRequirement(r.Key, operator, r.Values)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		terms = append(terms, *term)
	}
	return labels.NewSelector().Add(terms...).String(), errors.Join(errs...)
}

var labelOperators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
	metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// ignored says in Kubernetes' words that a selector was not understood; kept is what was
// understood of it.
func ignored(name, kept string) string {
	partially := ""
	if kept != "" {
		partially = "partially "
	}
	return specPath.Child("resourceAttributes", name).String() + " " + partially + "ignored due to parse error"
}
