package dynamicresource

import (
	"maps"
	"regexp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// semanticVersion is how semver.org writes a version.
var semanticVersion = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// validateAttributes checks attributes and their names. What the tag says of the value is about the whole
// name, so that kube-apiserver says it again where the name is shortened.
func validateAttributes(at *field.Path, attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a, value := attributes[name], at.Key(shorten(string(name), maxQualifiedName))
		errs = append(errs, validateQualified(at, name)...)
		errs = append(errs, validateAttribute(value, a)...)
		if len(name) > maxQualifiedName {
			errs = append(errs, exactlyOneValue(value, a)...)
		}
	}
	return errs
}

// exactlyOneValue complains about an attribute without a value, or with several.
func exactlyOneValue(at *field.Path, a resourcev1.DeviceAttribute) field.ErrorList {
	given := 0
	for _, is := range []bool{
		a.IntValue != nil, a.BoolValue != nil, a.StringValue != nil, a.VersionValue != nil,
		a.IntValues != nil, a.BoolValues != nil, a.StringValues != nil, a.VersionValues != nil,
	} {
		if is {
			given++
		}
	}
	const message = "exactly one value must be specified"
	switch given {
	case 0:
		return field.ErrorList{field.Invalid(at, "", message)}
	case 1:
		return nil
	}
	return field.ErrorList{field.Invalid(at, a, message)}
}

// validateAttribute checks the value of an attribute. That there is one, and no more, its tag says.
func validateAttribute(at *field.Path, a resourcev1.DeviceAttribute) field.ErrorList {
	var errs field.ErrorList
	if a.StringValue != nil {
		errs = append(errs, validateText(at.Child("string"), *a.StringValue)...)
	}
	if a.VersionValue != nil {
		errs = append(errs, validateVersion(at.Child("version"), *a.VersionValue)...)
	}
	errs = append(errs, notEmpty(at.Child("bools"), a.BoolValues)...)
	errs = append(errs, notEmpty(at.Child("ints"), a.IntValues)...)
	errs = append(errs, notEmpty(at.Child("strings"), a.StringValues)...)
	errs = append(errs, each(at.Child("strings"), a.StringValues, validateText)...)
	errs = append(errs, notEmpty(at.Child("versions"), a.VersionValues)...)
	errs = append(errs, each(at.Child("versions"), a.VersionValues, validateVersion)...)
	if hasEmptyBesideOther(a) {
		errs = append(errs, field.Invalid(at, a, "exactly one value must be specified"))
	}
	return errs
}

// hasEmptyBesideOther reports whether an attribute has one value and empty lists beside it, which its tag does not see.
func hasEmptyBesideOther(a resourcev1.DeviceAttribute) bool {
	given := []bool{a.BoolValues != nil, a.IntValues != nil, a.StringValues != nil, a.VersionValues != nil}
	empty, filled := 0, 0
	for i, size := range []int{len(a.BoolValues), len(a.IntValues), len(a.StringValues), len(a.VersionValues)} {
		switch {
		case size > 0:
			filled++
		case given[i]:
			empty++
		}
	}
	for _, single := range []bool{a.IntValue != nil, a.BoolValue != nil, a.StringValue != nil, a.VersionValue != nil} {
		if single {
			filled++
		}
	}
	return empty > 0 && filled == 1
}

func notEmpty[T any](at *field.Path, list []T) field.ErrorList {
	if list != nil && len(list) == 0 {
		return field.ErrorList{field.Invalid(at, list, "must not be empty if specified")}
	}
	return nil
}

func validateText(at *field.Path, text string) field.ErrorList {
	if len(text) > resourcev1.DeviceAttributeMaxValueLength {
		return field.ErrorList{field.TooLong(at, "", resourcev1.DeviceAttributeMaxValueLength)}
	}
	return nil
}

func validateVersion(at *field.Path, version string) field.ErrorList {
	var errs field.ErrorList
	if !semanticVersion.MatchString(version) {
		errs = append(errs, field.Invalid(at, version, "must be a string compatible with semver.org spec 2.0.0"))
	}
	return append(errs, validateText(at, version)...)
}

func tagsOfAttribute(at *field.Path, a resourcev1.DeviceAttribute) field.ErrorList {
	return tagOfUnion(at,
		member{"int", a.IntValue != nil}, member{"bool", a.BoolValue != nil}, member{"string", a.StringValue != nil}, member{"version", a.VersionValue != nil},
		member{"ints", len(a.IntValues) > 0}, member{"bools", len(a.BoolValues) > 0}, member{"strings", len(a.StringValues) > 0}, member{"versions", len(a.VersionValues) > 0})
}
