package builtin

import (
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// kind is an entry of the table. What is left out takes the usual value: the
// kind is namespaced, keeps a generation, may be overwritten by a PUT without
// resourceVersion, and lives under its plural.
type kind struct {
	Name       string // "Pod"
	Plural     string
	ShortNames []string
	Categories []string
	Cluster    bool // not namespaced

	// Path is the place in the store below /registry/, if it is not Plural.
	Path string
	TTL  time.Duration

	Fields []resource.Field
	Status bool
	Scale  *resource.Scale

	// NameRule says what is wrong with a name; nil: it must be a DNS
	// subdomain.
	NameRule apivalidation.ValidateNameFunc

	NoGeneration    bool
	ConditionalOnly bool // a PUT must name a resourceVersion
	UpsertOnUpdate  bool
	ReturnDeleted   bool
	OrphanByDefault bool
	// CreateWithStatus: a POST may bring a status.
	CreateWithStatus bool
}

// rules are a kind's strategy in terms of its own type. Members that are nil
// have nothing to add.
type rules[T resource.Object] struct {
	Default                func(obj T)
	PrepareForCreate       func(obj T)
	PrepareForUpdate       func(obj, old T)
	PrepareForStatusUpdate func(obj, old T)
	Validate               func(obj T) field.ErrorList
	ValidateUpdate         func(obj, old T) field.ErrorList
	ValidateCreate         func(obj T) field.ErrorList
	ValidateStatus         func(obj, old T) field.ErrorList
	ValidateSubresource    func(subresource string, obj, old T) field.ErrorList
	PrepareForDelete       func(obj T)
	Graceful               func(obj T, requested *int64) int64
}

// object is a pointer to a struct that is an API object.
type object[T any] interface {
	*T
	resource.Object
}

// list is a pointer to a struct that is an API list.
type list[L any] interface {
	*L
	runtime.Object
}

// define makes the resource of one kind: T is its Go type, L that of its
// list.
func define[T, L any, PT object[T], PL list[L]](gv schema.GroupVersion, k kind, s rules[PT]) *resource.Resource {
	path := k.Path
	if path == "" {
		path = k.Plural
	}
	return &resource.Resource{
		Group: gv.Group, Version: gv.Version,
		Kind: k.Name, ListKind: k.Name + "List",
		Plural: k.Plural, Singular: strings.ToLower(k.Name),
		ShortNames: k.ShortNames, Categories: k.Categories,
		Namespaced:  !k.Cluster,
		StorePrefix: "/registry/" + path + "/",
		TTL:         k.TTL,
		New:         func() resource.Object { return PT(new(T)) },
		NewList:     func() runtime.Object { return PL(new(L)) },
		Fields:      k.Fields,
		Status:      k.Status,
		Scale:       k.Scale,
		Strategy:    strategy(k, s),
	}
}

// strategy joins an entry's flags with its typed rules.
func strategy[T resource.Object](k kind, s rules[T]) resource.Strategy {
	return resource.Strategy{
		Default:                one(s.Default),
		PrepareForCreate:       one(s.PrepareForCreate),
		PrepareForUpdate:       two(s.PrepareForUpdate),
		PrepareForStatusUpdate: two(s.PrepareForStatusUpdate),
		Validate:               check(k.NameRule, s.Validate),
		ValidateUpdate:         checkChange(s.ValidateUpdate),
		ValidateCreate:         checkNew(s.ValidateCreate),
		ValidateStatus:         checkChange(s.ValidateStatus),
		PrepareForDelete:       one(s.PrepareForDelete),
		ValidateSubresource:    checkSubresource(s.ValidateSubresource),
		Graceful:               grace(s.Graceful),
		NoGeneration:           k.NoGeneration,
		UnconditionalUpdate:    !k.ConditionalOnly,
		UpsertOnUpdate:         k.UpsertOnUpdate,
		ReturnDeleted:          k.ReturnDeleted,
		OrphanByDefault:        k.OrphanByDefault,
		CreateWithStatus:       k.CreateWithStatus,
	}
}

// The following turn typed functions into the untyped members of a Strategy.
// The registry only ever hands a resource objects made by its own New, so
// the type assertions hold.

func one[T resource.Object](f func(T)) func(resource.Object) {
	if f == nil {
		return nil
	}
	return func(obj resource.Object) { f(obj.(T)) }
}

func two[T resource.Object](f func(obj, old T)) func(obj, old resource.Object) {
	if f == nil {
		return nil
	}
	return func(obj, old resource.Object) { f(obj.(T), old.(T)) }
}

// check also applies the name rule, so that every kind has one.
func check[T resource.Object](rule apivalidation.ValidateNameFunc, f func(T) field.ErrorList) func(resource.Object) field.ErrorList {
	if rule == nil {
		rule = apivalidation.NameIsDNSSubdomain
	}
	return func(obj resource.Object) field.ErrorList {
		var errs field.ErrorList
		if name := obj.GetName(); name != "" { // a missing name is the registry's affair
			errs = invalid(field.NewPath("metadata", "name"), name, rule(name, false))
		}
		if f != nil {
			errs = append(errs, f(obj.(T))...)
		}
		return errs
	}
}

func checkNew[T resource.Object](f func(T) field.ErrorList) func(resource.Object) field.ErrorList {
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

func grace[T resource.Object](f func(T, *int64) int64) func(resource.Object, *int64) int64 {
	if f == nil {
		return nil
	}
	return func(obj resource.Object, requested *int64) int64 { return f(obj.(T), requested) }
}

// selectable makes a field whose path is its name.
func selectable(name string) resource.Field {
	return selectableOr(name, "")
}

// selectableOr is selectable for a field whose absence means a value.
func selectableOr(name, absent string) resource.Field {
	return resource.Field{Name: name, Paths: [][]string{strings.Split(name, ".")}, Default: absent}
}

// final makes selectable fields whose values stay once they are set.
func final(names ...string) []resource.Field {
	list := fields(names...)
	for i := range list {
		list[i].Final = true
	}
	return list
}

// fields makes several selectable fields at once.
func fields(names ...string) []resource.Field {
	list := make([]resource.Field, 0, len(names))
	for _, name := range names {
		list = append(list, selectable(name))
	}
	return list
}
