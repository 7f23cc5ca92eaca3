package storage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	maxParameters     = 512
	maxParameterBytes = 256 << 10
)

// validateProvisioner checks the name of what makes volumes, in which capitals may be.
func validateProvisioner(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	name = strings.ToLower(name)
	return validate.Invalid(at, name, validation.IsQualifiedName(name))
}

func validateParameters(parameters map[string]string, mayBeEmpty bool) field.ErrorList {
	at := field.NewPath("parameters")
	if len(parameters) > maxParameters {
		return field.ErrorList{field.TooLong(at, "", maxParameters)}
	}
	var errs field.ErrorList
	if _, ok := parameters[""]; ok {
		errs = append(errs, field.Invalid(at, "", "field can not be empty."))
	}
	if bytesOf(parameters) > maxParameterBytes {
		errs = append(errs, field.TooLong(at, "", maxParameterBytes))
	}
	if len(parameters) == 0 && !mayBeEmpty {
		errs = append(errs, field.Required(at, "must contain at least one key/value pair"))
	}
	return errs
}

func bytesOf(values map[string]string) int {
	size := 0
	for key, value := range values {
		size += len(key) + len(value)
	}
	return size
}

// validateTopologies checks terms, none of which may say the same as one before it.
func validateTopologies(at *field.Path, terms []corev1.TopologySelectorTerm) field.ErrorList {
	var errs field.ErrorList
	before := map[string]int{describeTerm(nil): len(terms)} // as many empty ones: kube-apiserver compares with these, too
	for i, term := range terms {
		keys := map[string]sets.Set[string]{}
		for j, requirement := range term.MatchLabelExpressions {
			path := at.Index(i).Child("matchLabelExpressions").Index(j)
			values := sets.New[string]()
			if len(requirement.Values) == 0 {
				errs = append(errs, field.Required(path.Child("values"), ""))
			}
			for k, value := range requirement.Values {
				if values.Has(value) {
					errs = append(errs, field.Duplicate(path.Child("values").Index(k), value))
				}
				values.Insert(value)
			}
			errs = append(errs, metavalidation.ValidateLabelName(requirement.Key, path.Child("key"))...)
			if keys[requirement.Key] != nil {
				errs = append(errs, field.Duplicate(path.Child("key"), requirement.Key))
			}
			keys[requirement.Key] = values
		}
		same := describeTerm(keys)
		for range min(before[same], maxRepeated) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("matchLabelExpressions"), ""))
		}
		before[same]++
	}
	return errs
}

// maxRepeated is how often it is said of one term that there was one like it: once for each.
// A large object could have millions.
const maxRepeated = 8

// describeTerm returns the same text for terms that say the same.
func describeTerm(keys map[string]sets.Set[string]) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&text, "%q%q", key, sets.List(keys[key]))
	}
	return text.String()
}
