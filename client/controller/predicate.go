package controller

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

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
	switch version := c.Object.GetResourceVersion(); {
	case c.Kind != Updated:
		return false
	case version == "": // the server has none, or a transform drops it
		return isSame(c.Old, c.Object)
	default:
		return version == c.Old.GetResourceVersion()
	}
}

// isSame reports whether two states are one object. Go cannot compare values that
// contain maps or slices with ==, and panics: these are the same if all that they
// contain is.
func isSame[T client.Object](a, b T) bool {
	if reflect.ValueOf(a).Comparable() {
		return any(a) == any(b)
	}
	return reflect.DeepEqual(a, b)
}

// Predicate reports whether a change matters. It must not change the objects.
// [And], [Or] and [Not] combine predicates; a function that is given several
// wants all of them.
//
// Alone, a predicate takes its type from the informer. Go does not look so far into a call
// of And, Or, Not, HasLabels or InNamespaces ("cannot infer T"), so there the type
// is written once:
//
//	controller.For(c, widgets, controller.GenerationChanged)
//	controller.For(c, widgets, controller.Or(controller.GenerationChanged[*Widget], controller.LabelsChanged))
//	controller.For(c, widgets, controller.InNamespaces[*Widget]("shop"))
type Predicate[T client.Object] func(change Change[T]) bool

// GenerationChanged leaves out updates of metadata and status: the server
// increments an object's generation when its spec changes. The beginning of a
// deletion passes. Updates of kinds without a generation never pass. As with
// LabelsChanged, AnnotationsChanged and NoResync, additions and deletions pass.
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

// And lets pass what all of the predicates do. Without predicates that is
// everything.
func And[T client.Object](predicates ...Predicate[T]) Predicate[T] {
	return func(change Change[T]) bool {
		for _, wanted := range predicates {
			if !wanted(change) {
				return false
			}
		}
		return true
	}
}

// Or lets pass what one of the predicates does. Without predicates that is
// nothing.
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

// Not lets pass what the predicate does not.
func Not[T client.Object](predicate Predicate[T]) Predicate[T] {
	return func(change Change[T]) bool { return !predicate(change) }
}

// HasLabels lets pass changes of objects whose labels match the selector. An
// update passes if the old or the new state matches: an object that no longer
// matches is reconciled once more. A nil selector matches everything. An
// informer with a label selector costs less than a predicate, if all that use
// the informer want the same objects.
func HasLabels[T client.Object](selector labels.Selector) Predicate[T] {
	matches := func(obj T) bool { return selector == nil || selector.Matches(labels.Set(obj.GetLabels())) }
	return func(change Change[T]) bool {
		return matches(change.Object) || change.Kind == Updated && matches(change.Old)
	}
}

// InNamespaces lets pass changes of objects in one of the namespaces.
// Cluster-scoped objects are in namespace "".
func InNamespaces[T client.Object](namespaces ...string) Predicate[T] {
	return func(change Change[T]) bool { return slices.Contains(namespaces, change.Object.GetNamespace()) }
}
