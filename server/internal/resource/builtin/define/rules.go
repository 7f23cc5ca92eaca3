package define

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Rules are a kind's strategy in terms of its own type. Members that are nil
// have nothing to add.
type Rules[T resource.Object] struct {
	Default                func(obj T)
	DefaultTimes           func(obj T, now metav1.Time)
	PrepareForCreate       func(obj T)
	CompleteNew            func(obj T)
	CompleteSubresource    func(subresource string, obj T)
	CompleteStored         func(obj T)
	CompleteStatus         func(obj T)
	PrepareForUpdate       func(obj, old T)
	RenewTimes             func(obj, old T, now metav1.Time)
	PrepareForStatusUpdate func(obj, old T)
	ValidateFirst          func(obj T) field.ErrorList
	ValidateUnchanged      func(obj, old T) field.ErrorList
	Validate               func(obj T) field.ErrorList
	ValidateUpdate         func(obj, old T) field.ErrorList
	ValidateCreate         func(obj T) field.ErrorList
	ValidateStatus         func(obj, old T) field.ErrorList
	ValidateSubresource    func(subresource string, obj, old T) field.ErrorList
	NeedsLabel             func(obj, old T) *resource.NeededLabel // old is nil for a new object
	PrepareForDelete       func(obj T, now metav1.Time)
	FirstFinalizers        func(obj T, opts *metav1.DeleteOptions) []string
	Undeletable            func(name string) string
	Warnings               func(obj, old T) []string // old is nil for a new object
	StatusWarnings         func(obj T) []string
	Graceful               func(obj T, requested *int64) int64
	// NameRule takes the place of those of the Kind where the name depends on the rest of
	// the object.
	NameRule func(obj T) apivalidation.ValidateNameFunc
}

// strategy joins an entry's flags with its typed rules.
func strategy[T resource.Object](k Kind, s Rules[T]) resource.Strategy {
	return resource.Strategy{
		Default:                one(s.Default),
		DefaultTimes:           timed(s.DefaultTimes),
		PrepareForCreate:       one(s.PrepareForCreate),
		CompleteNew:            one(s.CompleteNew),
		CompleteSubresource:    ofSubresource(s.CompleteSubresource),
		CompleteStored:         one(s.CompleteStored),
		CompleteStatus:         one(s.CompleteStatus),
		PrepareForUpdate:       two(s.PrepareForUpdate),
		RenewTimes:             renew(s.RenewTimes),
		PrepareForStatusUpdate: two(s.PrepareForStatusUpdate),
		StatusKeeps:            k.StatusKeeps,
		Unowned:                unowned(k.Unowned),
		ValidateName:           checkName(k, s.NameRule),
		ValidateFirst:          check(s.ValidateFirst),
		MetadataIfValid:        k.MetadataIfValid,
		NamesBeforeFinalizers:  k.NamesBeforeFinalizers,
		ValidateUnchanged:      checkChange(s.ValidateUnchanged),
		Validate:               check(s.Validate),
		ValidateUpdate:         checkChange(s.ValidateUpdate),
		ValidateCreate:         check(s.ValidateCreate),
		ValidateStatus:         checkChange(s.ValidateStatus),
		NeedsLabel:             needs(s.NeedsLabel),
		PrepareForDelete:       timed(s.PrepareForDelete),
		FirstFinalizers:        finalizers(s.FirstFinalizers),
		Undeletable:            s.Undeletable,
		Warnings:               warn(s.Warnings),
		StatusWarnings:         warnOfStatus(s.StatusWarnings),
		ValidateSubresource:    checkSubresource(s.ValidateSubresource),
		Graceful:               grace(s.Graceful),
		NoGeneration:           k.NoGeneration,
		NoFirstGeneration:      k.NoFirstGeneration,
		UnconditionalUpdate:    !k.ConditionalOnly,
		UpsertOnUpdate:         k.UpsertOnUpdate,
		MarkedByTime:           k.MarkedByTime,
		PreconditionFailed:     k.PreconditionFailed,
		ReturnDeleted:          k.ReturnDeleted,
		NoDependents:           k.NoDependents,
		OrphanByDefault:        k.OrphanByDefault,
		OrphanWarning:          k.OrphanWarning,
		CreateWithStatus:       k.CreateWithStatus,
		NamesUnnamed:           k.NamesUnnamed,
		WholeGenerateName:      k.WholeGenerateName,
	}
}

// The following functions turn a typed function into an untyped member of a
// Strategy. The registry only passes a resource objects that its own New made,
// so the type assertions hold.

func one[T resource.Object](f func(T)) func(resource.Object) {
	if f == nil {
		return nil
	}
	return func(obj resource.Object) { f(obj.(T)) }
}

func ofSubresource[T resource.Object](f func(string, T)) func(string, resource.Object) {
	if f == nil {
		return nil
	}
	return func(subresource string, obj resource.Object) { f(subresource, obj.(T)) }
}

func timed[T resource.Object](f func(T, metav1.Time)) func(resource.Object, metav1.Time) {
	if f == nil {
		return nil
	}
	return func(obj resource.Object, now metav1.Time) { f(obj.(T), now) }
}

func renew[T resource.Object](f func(obj, old T, now metav1.Time)) func(obj, old resource.Object, now metav1.Time) {
	if f == nil {
		return nil
	}
	return func(obj, old resource.Object, now metav1.Time) { f(obj.(T), old.(T), now) }
}

func warn[T resource.Object](f func(obj, old T) []string) func(obj, old resource.Object) []string {
	if f == nil {
		return nil
	}
	return func(obj, old resource.Object) []string {
		before, _ := old.(T)
		return f(obj.(T), before)
	}
}

func warnOfStatus[T resource.Object](f func(obj T) []string) func(resource.Object) []string {
	if f == nil {
		return nil
	}
	return func(obj resource.Object) []string { return f(obj.(T)) }
}

func needs[T resource.Object](f func(obj, old T) *resource.NeededLabel) func(obj, old resource.Object) *resource.NeededLabel {
	if f == nil {
		return nil
	}
	return func(obj, old resource.Object) *resource.NeededLabel {
		before, _ := old.(T)
		return f(obj.(T), before)
	}
}

func two[T resource.Object](f func(obj, old T)) func(obj, old resource.Object) {
	if f == nil {
		return nil
	}
	return func(obj, old resource.Object) { f(obj.(T), old.(T)) }
}

// checkName returns the rule for the names of a kind, so that every kind has one. of is
// Rules.NameRule.
func checkName[T resource.Object](k Kind, of func(obj T) apivalidation.ValidateNameFunc) func(obj resource.Object, isNew bool) field.ErrorList {
	rule := k.NameRule
	if rule == nil {
		rule = apivalidation.NameIsDNSSubdomain
	}
	return func(obj resource.Object, isNew bool) field.ErrorList {
		switch {
		case k.NameRuleForNew && !isNew:
			return nil
		case of != nil:
			return checkNames(obj, of(obj.(T)))
		}
		return checkNames(obj, rule)
	}
}

func checkNames(obj resource.Object, rule apivalidation.ValidateNameFunc) field.ErrorList {
	var errs field.ErrorList
	if prefix := obj.GetGenerateName(); prefix != "" {
		errs = validate.Invalid(field.NewPath("metadata", "generateName"), prefix, rule(prefix, true))
	}
	if name := obj.GetName(); name != "" { // the registry complains about a missing name
		errs = append(errs, validate.Invalid(field.NewPath("metadata", "name"), name, rule(name, false))...)
	}
	return errs
}

func check[T resource.Object](f func(T) field.ErrorList) func(resource.Object) field.ErrorList {
	if f == nil {
		return nil
	}
	return func(obj resource.Object) field.ErrorList { return f(obj.(T)) }
}

func checkChange[T resource.Object](f func(obj, old T) field.ErrorList) func(obj, old resource.Object) field.ErrorList {
	if f == nil {
		return nil
	}
	return func(obj, old resource.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}

func checkSubresource[T resource.Object](f func(string, T, T) field.ErrorList) func(string, resource.Object, resource.Object) field.ErrorList {
	if f == nil {
		return nil
	}
	return func(subresource string, obj, old resource.Object) field.ErrorList {
		return f(subresource, obj.(T), old.(T))
	}
}

func finalizers[T resource.Object](f func(T, *metav1.DeleteOptions) []string) func(resource.Object, *metav1.DeleteOptions) []string {
	if f == nil {
		return nil
	}
	return func(obj resource.Object, opts *metav1.DeleteOptions) []string { return f(obj.(T), opts) }
}

func grace[T resource.Object](f func(T, *int64) int64) func(resource.Object, *int64) int64 {
	if f == nil {
		return nil
	}
	return func(obj resource.Object, requested *int64) int64 { return f(obj.(T), requested) }
}

// unowned turns the fields of each subresource into a set.
func unowned(fields map[string][]string) map[string]*fieldpath.Set {
	if fields == nil {
		return nil
	}
	sets := map[string]*fieldpath.Set{}
	for subresource, paths := range fields {
		sets[subresource] = fieldpath.NewSet()
		for _, path := range paths {
			var elements []any
			for name := range strings.SplitSeq(path, ".") {
				elements = append(elements, name)
			}
			sets[subresource].Insert(fieldpath.MakePathOrDie(elements...))
		}
	}
	return sets
}
