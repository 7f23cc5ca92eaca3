package dynamicresource

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/levelwire/levelwire/server/internal/cel"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validateDeviceClaim checks what is asked for, but what the tags of its types say, which kube-apiserver checks after
// everything else: see tagsOfDeviceClaim.
func validateDeviceClaim(at *field.Path, claim *resourcev1.DeviceClaim) field.ErrorList {
	names, constrained := namesOf(claim.Requests), constrainedAttributes(claim.Constraints)
	var total uint64 // cost of derived attributes
	errs := each(at.Child("requests"), unlessTooMany(claim.Requests, resourcev1.DeviceRequestsMaxSize),
		func(at *field.Path, r resourcev1.DeviceRequest) field.ErrorList {
			return validateRequest(at, &r, constrained, &total)
		})
	errs = append(errs, each(at.Child("constraints"), unlessTooMany(claim.Constraints, resourcev1.DeviceConstraintsMaxSize),
		func(at *field.Path, c resourcev1.DeviceConstraint) field.ErrorList {
			return validateConstraint(at, c, names)
		})...)
	errs = append(errs, each(at.Child("config"), unlessTooMany(claim.Config, resourcev1.DeviceConfigMaxSize),
		func(at *field.Path, c resourcev1.DeviceClaimConfiguration) field.ErrorList {
			return append(validateReferences(at.Child("requests"), c.Requests, names), validateConfiguration(at, c.DeviceConfiguration, false)...)
		})...)
	if total > resourcev1.DeviceClaimDerivedAttributeCELMaxCost {
		errs = append(errs, field.Forbidden(at, "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"))
	}
	return errs
}

// requestNames are the names of the requests of a claim with those of their alternatives.
type requestNames map[string]sets.Set[string]

func namesOf(requests []resourcev1.DeviceRequest) requestNames {
	names := requestNames{}
	for _, r := range requests {
		alternatives := sets.New[string]()
		for _, alternative := range r.FirstAvailable {
			alternatives.Insert(alternative.Name)
		}
		names[r.Name] = alternatives
	}
	return names
}

func (n requestNames) has(reference string) bool {
	request, alternative, of := strings.Cut(reference, "/")
	alternatives, ok := n[request]
	return ok && (!of || alternatives.Has(alternative))
}

// attributes are names of attributes by the request or alternative that constraints with them are about; "" is all.
type attributes map[string]sets.Set[string]

func constrainedAttributes(constraints []resourcev1.DeviceConstraint) attributes {
	all := attributes{}
	for _, c := range constraints {
		attribute := c.MatchAttribute
		if attribute == nil {
			attribute = c.DistinctAttribute
		}
		if attribute == nil {
			continue
		}
		requests := c.Requests
		if len(requests) == 0 {
			requests = []string{""}
		}
		for _, request := range requests {
			if all[request] == nil {
				all[request] = sets.New[string]()
			}
			all[request].Insert(string(*attribute))
		}
	}
	return all
}

func (a attributes) has(request, attribute string) bool {
	parent, _, _ := strings.Cut(request, "/")
	return a[""].Has(attribute) || a[request].Has(attribute) || a[parent].Has(attribute)
}

func validateRequest(at *field.Path, r *resourcev1.DeviceRequest, constrained attributes, total *uint64) field.ErrorList {
	errs := validateLabel(at.Child("name"), r.Name)
	switch alternatives := len(r.FirstAvailable) > 0; {
	case r.Exactly == nil && !alternatives:
		return append(errs, field.Required(at, "exactly one of `exactly` or `firstAvailable` is required"))
	case r.Exactly != nil && alternatives:
		return append(errs, field.Invalid(at, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"))
	case alternatives:
		return append(errs, each(at.Child("firstAvailable"), unlessTooMany(r.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize),
			func(at *field.Path, alternative resourcev1.DeviceSubRequest) field.ErrorList {
				return append(validateLabel(at.Child("name"), alternative.Name), askedOfAlternative(&alternative).validate(at, r.Name+"/"+alternative.Name, constrained, total)...)
			})...)
	}
	exactly := at.Child("exactly")
	errs = append(errs, validate.RequiredSyntax(exactly.Child("deviceClassName"), r.Exactly.DeviceClassName, validation.IsDNS1123Subdomain)...)
	return append(errs, askedExactly(r.Exactly).validate(exactly, r.Name, constrained, total)...)
}

// asked is what requests and their alternatives have in common.
type asked struct {
	selectors   []resourcev1.DeviceSelector
	derived     []resourcev1.DeviceDerivedAttribute
	mode        resourcev1.DeviceAllocationMode
	count       int64
	tolerations []resourcev1.DeviceToleration
}

func askedExactly(r *resourcev1.ExactDeviceRequest) asked {
	return asked{r.Selectors, r.DerivedAttributes, r.AllocationMode, r.Count, r.Tolerations}
}

func askedOfAlternative(r *resourcev1.DeviceSubRequest) asked {
	return asked{r.Selectors, r.DerivedAttributes, r.AllocationMode, r.Count, r.Tolerations}
}

// validate checks what a request with a name asks for.
func (a asked) validate(at *field.Path, request string, constrained attributes, total *uint64) field.ErrorList {
	errs := each(at.Child("selectors"), unlessTooMany(a.selectors, resourcev1.DeviceSelectorsMaxSize), validateSelector)
	errs = append(errs, a.validateDerived(at.Child("derivedAttributes"), request, constrained, total)...)
	switch count := at.Child("count"); {
	case a.mode == resourcev1.DeviceAllocationModeAll && a.count != 0:
		errs = append(errs, field.Invalid(count, a.count, fmt.Sprintf("must not be specified when allocationMode is '%s'", a.mode)))
	case a.mode == resourcev1.DeviceAllocationModeExactCount && a.count <= 0:
		errs = append(errs, field.Invalid(count, a.count, "must be greater than zero"))
	}
	return append(errs, each(at.Child("tolerations"), a.tolerations, validateToleration)...)
}

// validateDerived: an attribute is derived for constraints, which say it of the request.
// What the expressions cost is added to total.
func (a asked) validateDerived(at *field.Path, request string, constrained attributes, total *uint64) field.ErrorList {
	errs := each(at, a.derived, func(at *field.Path, d resourcev1.DeviceDerivedAttribute) field.ErrorList {
		var errs field.ErrorList
		if d.Name != "" && !constrained.has(request, string(d.Name)) {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"))
		}
		if d.Expression == "" { // a tag refuses it
			return errs
		}
		cost, refused := compileExpression(at.Child("expression"), d.Expression, true)
		*total += cost
		return append(errs, refused...)
	})
	name := func(d resourcev1.DeviceDerivedAttribute) string { return string(d.Name) }
	return append(errs, repeated(at, a.derived, name, func(d resourcev1.DeviceDerivedAttribute) any { return name(d) })...)
}

func validateSelector(at *field.Path, s resourcev1.DeviceSelector) field.ErrorList {
	if s.CEL == nil {
		return field.ErrorList{field.Required(at.Child("cel"), "")}
	}
	return validateExpression(at.Child("cel", "expression"), s.CEL.Expression)
}

// validateExpression checks an expression that selects devices.
func validateExpression(at *field.Path, expression string) field.ErrorList {
	_, errs := compileExpression(at, expression, false)
	return errs
}

// compileExpression returns what an expression costs at most. One that is too long is not compiled.
func compileExpression(at *field.Path, expression string, derived bool) (cost uint64, errs field.ErrorList) {
	if len(expression) > resourcev1.CELSelectorExpressionMaxLength {
		return 0, field.ErrorList{field.TooLong(at, "", resourcev1.CELSelectorExpressionMaxLength)}
	}
	cost, err := cel.CompileDevice(expression, derived)
	var compiled *apiservercel.Error
	switch {
	case errors.As(err, &compiled) && compiled.Type == apiservercel.ErrorTypeInvalid:
		return 0, field.ErrorList{field.Invalid(at, expression, compiled.Detail)}
	case err != nil:
		return 0, field.ErrorList{field.InternalError(at, err)}
	case cost > resourcev1.CELSelectorExpressionMaxCost:
		return cost, field.ErrorList{field.Forbidden(at, "too complex, exceeds cost limit")}
	}
	return cost, nil
}

func validateConstraint(at *field.Path, c resourcev1.DeviceConstraint, names requestNames) field.ErrorList {
	errs := validateReferences(at.Child("requests"), c.Requests, names)
	if c.MatchAttribute == nil && c.DistinctAttribute == nil {
		// The words are kube-apiserver's.
		errs = append(errs, field.Required(at, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`))
	}
	return errs
}

func validateReferences(at *field.Path, references []string, names requestNames) field.ErrorList {
	return each(at, unlessTooMany(references, resourcev1.DeviceRequestsMaxSize), func(at *field.Path, reference string) field.ErrorList {
		return validateReference(at, reference, names)
	})
}

// validateReference checks the name of a request, or of an alternative after that of its request.
func validateReference(at *field.Path, reference string, names requestNames) field.ErrorList {
	const unknown = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	if strings.Count(reference, "/") > 1 {
		return field.ErrorList{field.Invalid(at, reference, unknown)}
	}
	var errs field.ErrorList
	for part := range strings.SplitSeq(reference, "/") {
		errs = append(errs, validateLabel(at, part)...)
	}
	if !names.has(reference) {
		errs = append(errs, field.Invalid(at, reference, unknown))
	}
	return errs
}

// validateConfiguration checks what is for a driver. Of one that is stored, the size was once not bounded.
func validateConfiguration(at *field.Path, c resourcev1.DeviceConfiguration, stored bool) field.ErrorList {
	if c.Opaque == nil {
		return field.ErrorList{field.Required(at.Child("opaque"), "")}
	}
	most := resourcev1.OpaqueParametersMaxLength
	if stored {
		most = math.MaxInt
	}
	return validateRaw(at.Child("opaque", "parameters"), c.Opaque.Parameters, most)
}

// validateRaw checks that raw JSON is an object of at most so many bytes.
func validateRaw(at *field.Path, raw runtime.RawExtension, most int) field.ErrorList {
	const hidden = "<value omitted>"
	var value any
	switch {
	case len(raw.Raw) == 0:
		return field.ErrorList{field.Required(at, "")}
	case len(raw.Raw) > most:
		return field.ErrorList{field.TooLong(at, "", most)}
	}
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return field.ErrorList{field.Invalid(at, hidden, fmt.Sprintf("error parsing data as JSON: %v", err))}
	}
	if value == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if _, ok := value.(map[string]any); !ok {
		return field.ErrorList{field.Invalid(at, hidden, "must be a valid JSON object")}
	}
	return nil
}
