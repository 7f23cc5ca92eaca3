package define

import (
	"reflect"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// CountStrictly gives obj another generation than old if a part of it, now and before, differs at all.
// It is for the few kinds that kube-apiserver compares strictly, where an empty list is not the same as
// none: everywhere else, the registry counts.
func CountStrictly(obj, old resource.Object, now, before any) {
	if !reflect.DeepEqual(now, before) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}
