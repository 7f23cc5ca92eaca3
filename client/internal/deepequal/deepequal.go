// Package deepequal compares objects of any type.
package deepequal

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// Semantic compares as Kubernetes does: an empty list equals none, and "1000m" equals "1". Types of
// the program may have fields for which that has no comparison, and panics: times of Go, addresses
// and others whose fields are not exported. Objects with such fields are compared as Go does.
func Semantic(a, b any) (equal bool) {
	if contain.Call("equality.Semantic", func() { equal = equality.Semantic.DeepEqual(a, b) }) != nil {
		return reflect.DeepEqual(a, b)
	}
	return equal
}
