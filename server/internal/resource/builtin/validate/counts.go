package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Count is a number in a status, with the name of its field.
type Count struct {
	Field string
	Value int64
}

// Counts complains about numbers below zero.
func Counts(path *field.Path, counts ...Count) field.ErrorList {
	var errs field.ErrorList
	for _, c := range counts {
		errs = append(errs, NotNegative(path.Child(c.Field), &c.Value)...)
	}
	return errs
}

// AtMost complains about numbers that are greater than another one, which is called as Kubernetes
// calls it there.
func AtMost(path *field.Path, most int64, called string, counts ...Count) field.ErrorList {
	var errs field.ErrorList
	for _, c := range counts {
		if c.Value > most {
			errs = append(errs, field.Invalid(path.Child(c.Field), c.Value, "cannot be greater than "+called))
		}
	}
	return errs
}

// NotDecreased complains about a counter that is less than before, or is no more.
func NotDecreased(path *field.Path, now, before *int32) field.ErrorList {
	var value int32
	if now != nil {
		value = *now
	}
	if before == nil || now != nil && *now >= *before {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "cannot be decremented")}
}
