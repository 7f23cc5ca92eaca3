package dynamicresource

import (
	"fmt"
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateCapacity checks a capacity of a device, of which a device that is shared gives parts away by a policy.
func validateCapacity(at *field.Path, c resourcev1.DeviceCapacity, shared bool) field.ErrorList {
	policy, path := c.RequestPolicy, at.Child("requestPolicy")
	switch {
	case policy == nil:
		return nil
	case !shared:
		return field.ErrorList{field.Forbidden(path, "allowMultipleAllocations must be true")}
	case len(policy.ValidValues) > 0 && policy.ValidRange != nil:
		return field.ErrorList{field.Forbidden(path, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case len(policy.ValidValues) > 0 && policy.Default == nil:
		return field.ErrorList{field.Required(path.Child("default"), "required when validValues is defined")}
	case len(policy.ValidValues) > 0:
		return validateChoices(path.Child("validValues"), policy.ValidValues, *policy.Default, c.Value)
	case policy.ValidRange != nil && policy.Default == nil:
		return field.ErrorList{field.Required(path.Child("default"), "required when validRange is defined")}
	case policy.ValidRange != nil:
		return partition{policy.ValidRange, *policy.Default, c.Value}.validate(path.Child("validRange"))
	}
	return nil
}

// maxChoices bounds the amounts that requests may ask for.
const maxChoices = 10

// validateChoices checks the amounts that requests may ask for, which rise and contain the one that is meant without.
func validateChoices(at *field.Path, choices []apiresource.Quantity, preset, capacity apiresource.Quantity) field.ErrorList {
	var errs field.ErrorList
	for i := 1; i < len(choices); i++ {
		if choices[i-1].Cmp(choices[i]) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), choices[i].String(), "values must be sorted in ascending order"))
		}
	}
	known := false
	if tooLong := tooMany(at, choices, maxChoices); len(tooLong) > 0 {
		errs = append(errs, tooLong...)
	} else {
		errs = append(errs, each(at, choices, func(at *field.Path, choice apiresource.Quantity) field.ErrorList {
			known = known || choice.Cmp(preset) == 0
			if choice.Cmp(capacity) > 0 {
				return field.ErrorList{field.Invalid(at, choice.String(), "option is larger than capacity value: "+capacity.String())}
			}
			return nil
		})...)
		amount := func(choice apiresource.Quantity) string { return choice.AsDec().String() }
		errs = append(errs, repeated(at, choices, amount, func(choice apiresource.Quantity) any { return amount(choice) })...)
	}
	if !known {
		errs = append(errs, field.Invalid(at, preset.String(), "default value is not valid according to the requestPolicy"))
	}
	return errs
}

// partition is a range of amounts that requests may ask for, of a capacity. preset is what a request without an amount
// asks for.
type partition struct {
	*resourcev1.CapacityRequestPolicyRange
	preset, capacity apiresource.Quantity
}

func (p partition) validate(at *field.Path) field.ErrorList {
	if p.Min == nil {
		return field.ErrorList{field.Required(at.Child("min"), "required when validRange is defined")}
	}
	errs := p.validateBounds(at)
	inMilli := p.fractional()
	if inMilli {
		if tooFine := p.validateFineness(at); len(tooFine) > 0 {
			return append(errs, tooFine...)
		}
	}
	if p.Step == nil {
		return errs
	}
	return append(errs, p.validateStep(at, inMilli)...)
}

func (p partition) validateBounds(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(name string, amount *apiresource.Quantity, why string, than *apiresource.Quantity) {
		errs = append(errs, field.Invalid(at.Child(name), amount.String(), why+": "+than.String()))
	}
	if p.Min.Cmp(p.capacity) > 0 {
		refuse("min", p.Min, "min is larger than capacity value", &p.capacity)
	}
	if p.preset.Cmp(*p.Min) < 0 {
		refuse("default", &p.preset, "default is less than min", p.Min)
	}
	if p.Max == nil {
		return errs
	}
	if p.Min.Cmp(*p.Max) > 0 {
		refuse("max", p.Min, "min is larger than max", p.Max)
	}
	if p.Max.Cmp(p.capacity) > 0 {
		refuse("max", p.Max, "max is larger than capacity value", &p.capacity)
	}
	if p.preset.Cmp(*p.Max) > 0 {
		refuse("default", &p.preset, "default is more than max", p.Max)
	}
	return errs
}

// amounts are the amounts that are there, by the names that errors give them.
func (p partition) amounts() []namedAmount {
	all := []namedAmount{{"default", &p.preset}, {"min", p.Min}}
	if p.Max != nil {
		all = append(all, namedAmount{"max", p.Max})
	}
	if p.Step != nil {
		all = append(all, namedAmount{"step", p.Step})
	}
	return all
}

type namedAmount struct {
	name string
	*apiresource.Quantity
}

// fractional reports whether an amount is not whole.
func (p partition) fractional() bool {
	for _, amount := range p.amounts() {
		if rounded := amount.DeepCopy(); !rounded.RoundUp(0) {
			return true
		}
	}
	return false
}

// validateFineness: steps of fractions are counted in thousandths.
func (p partition) validateFineness(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, amount := range p.amounts() {
		if amount.Cmp(*apiresource.NewMilliQuantity(amount.MilliValue(), amount.Format)) != 0 {
			errs = append(errs, field.Invalid(at.Child(amount.name), amount.String(), "value cannot be represented as a milli value"))
		}
	}
	return errs
}

// validateStep: from the least amount, steps lead to the greatest and to the preset one.
func (p partition) validateStep(at *field.Path, inMilli bool) field.ErrorList {
	path := at.Child("step")
	if p.Step.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, p.Step.String(), "must be greater than zero")}
	}
	var errs field.ErrorList
	next := p.Min.DeepCopy()
	if next.Add(*p.Step); next.Cmp(p.capacity) > 0 {
		errs = append(errs, field.Invalid(path, p.Step.String(), fmt.Sprintf("one step %s is larger than capacity value: %s", next.String(), p.capacity.String())))
	}
	if !inMilli {
		if huge := p.validateWhole(at); len(huge) > 0 {
			return append(errs, huge...)
		}
	}
	value := (*apiresource.Quantity).Value
	if inMilli {
		value = (*apiresource.Quantity).MilliValue
	}
	reached := []*apiresource.Quantity{&p.preset}
	if p.Max != nil {
		reached = append(reached, p.Max)
	}
	for _, amount := range reached {
		if (value(amount)-value(p.Min))%value(p.Step) != 0 {
			errs = append(errs, field.Invalid(path, amount.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", p.Step.String(), p.Min.String())))
		}
	}
	return errs
}

// validateWhole: whole amounts are counted in an int64, in which what is larger would be 0.
func (p partition) validateWhole(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, amount := range p.amounts() {
		switch path := at.Child(amount.name); {
		case amount.Sign() < 0:
			errs = append(errs, field.Invalid(path, amount.String(), apivalidation.IsNegativeErrorMsg))
		case amount.CmpInt64(math.MaxInt64) > 0:
			errs = append(errs, field.Invalid(path, amount.String(), "must not be larger than 9223372036854775807"))
		}
	}
	return errs
}
