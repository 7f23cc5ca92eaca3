package validate

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SetMembers returns the JSON names of the members that are set in a struct
// of pointers, of which exactly one should be.
func SetMembers(union any) []string {
	var names []string
	value := reflect.ValueOf(union)
	for i := range value.NumField() {
		if f := value.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// NoParentDir checks a path on the host: it must not be empty and must not
// contain "..".
func NoParentDir(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(path, value, "must not contain '..'")}
		}
	}
	return nil
}
