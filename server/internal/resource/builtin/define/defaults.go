package define

import "slices"

// SetDefault sets *p to value if it has the zero value.
func SetDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// SetDefaultPtr makes *p point to value if it is nil.
func SetDefaultPtr[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// NoEmptyList makes a list without items the same as none, which is what Kubernetes stores of it.
func NoEmptyList[T any](list *[]T) {
	if *list != nil && len(*list) == 0 {
		*list = nil
	}
}

// NoEmptyListIn is NoEmptyList for a list in every element of another one, which is copied then: it
// may be another object's, too.
func NoEmptyListIn[E, T any](list *[]E, in func(*E) *[]T) {
	empty := func(element E) bool { found := *in(&element); return found != nil && len(found) == 0 }
	if !slices.ContainsFunc(*list, empty) {
		return
	}
	*list = slices.Clone(*list)
	for i := range *list {
		NoEmptyList(in(&(*list)[i]))
	}
}

// ValueOr returns *p, or fallback if p is nil.
func ValueOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
