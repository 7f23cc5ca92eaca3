package reflector

import "k8s.io/apimachinery/pkg/util/resourceversion"

// older tells that version a is surely before b. Versions are decimal numbers
// (KEP-5504); those of a server with others can be compared for equality only,
// so none of them is older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// unset tells that a version names no state: such a watch begins with
// synthetic events.
func unset(version string) bool { return version == "" || version == "0" }
