package controller

import (
	"maps"

	"github.com/levelwire/levelwire/client"
)

// ChangeKind says what happened to an object.
type ChangeKind int

// The kinds of changes.
const (
	Added ChangeKind = iota
	Updated
	Deleted
)

// Change is what a Predicate decides on.
type Change[T client.Object] struct {
	Kind ChangeKind
	// Object is the new state; of a deleted object the last one that was seen.
	Object T
	// Old is the state before; only of Updated.
	Old T
	// Initial: the object was there before the controller.
	Initial bool
	// FinalStateUnknown: of Deleted; the end itself was missed.
	FinalStateUnknown bool
}

// Resync reports whether nothing has changed: the handler only gets the object
// again.
func (c Change[T]) Resync() bool {
	return c.Kind == Updated && c.Old.GetResourceVersion() == c.Object.GetResourceVersion()
}

// Predicate reports whether a change matters. It must not change the objects.
// The predicates of this package let everything pass that is no update.
type Predicate[T client.Object] func(change Change[T]) bool

// GenerationChanged leaves out updates of metadata and status: the server
// increments an object's generation when its spec changes. The beginning of a
// deletion passes. Kinds without a generation never pass.
func GenerationChanged[T client.Object](change Change[T]) bool {
	return change.Kind != Updated ||
		change.Old.GetGeneration() != change.Object.GetGeneration() ||
		(change.Old.GetDeletionTimestamp() == nil) != (change.Object.GetDeletionTimestamp() == nil)
}

// LabelsChanged leaves out updates that keep all labels.
func LabelsChanged[T client.Object](change Change[T]) bool {
	return change.Kind != Updated || !maps.Equal(change.Old.GetLabels(), change.Object.GetLabels())
}

// AnnotationsChanged leaves out updates that keep all annotations.
func AnnotationsChanged[T client.Object](change Change[T]) bool {
	return change.Kind != Updated || !maps.Equal(change.Old.GetAnnotations(), change.Object.GetAnnotations())
}

// NoResync leaves out resyncs.
func NoResync[T client.Object](change Change[T]) bool { return !change.Resync() }

// Or lets pass what one of the predicates does.
func Or[T client.Object](predicates ...Predicate[T]) Predicate[T] {
	return func(change Change[T]) bool {
		for _, wanted := range predicates {
			if wanted(change) {
				return true
			}
		}
		return false
	}
}
