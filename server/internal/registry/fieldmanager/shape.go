package fieldmanager

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/levelwire/levelwire/server/internal/resource/mergestrategy"
)

// shape is what a Go type is to field ownership. Shapes are immutable and may
// refer to themselves, as types do.
type shape struct {
	kind   shapeKind
	t      reflect.Type // without pointers
	whole  bool         // structs, maps and lists that are one leaf
	fields []field      // of a struct, in the order of their names
	elem   *shape       // of a map or list
	keys   []key        // of a keyed list, in the order of their names
}

type shapeKind uint8

const (
	scalar shapeKind = iota // anything that JSON has no parts for
	structure
	dictionary
	plainList
	keyedList
	setList
	open // arbitrary JSON
)

// field is one member of a struct's JSON form.
type field struct {
	name      string
	quoted    string // as a member name of FieldsV1
	index     []int  // as for reflect.Value.FieldByIndex; embedded structs are not pointers
	omitEmpty bool
	omitZero  func(reflect.Value) bool
	shape     *shape
	// unowned members of ObjectMeta are nobody's, in the metadata of an object
	// itself.
	unowned bool
}

// unowned are the members of ObjectMeta that nobody can own.
var unowned = []string{
	"creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid",
}

// key is one of the members that tell the elements of a keyed list apart.
type key struct {
	field *field
	// fallback is the value of an absent member; nil if it then is no part of
	// the key.
	fallback any
}

var shapes sync.Map // reflect.Type -> *shape; one entry per kind in the binary

// shapeOf returns the shape of a struct type.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	b := shapeBuilder{known: map[reflect.Type]*shape{}}
	built := b.of(t)
	for _, known := range b.known {
		resolveKeys(known)
	}
	s, _ := shapes.LoadOrStore(t, built)
	return s.(*shape)
}

// shapeBuilder knows the types that it has begun with.
type shapeBuilder struct {
	known map[reflect.Type]*shape
}

var (
	scalarTypes = []reflect.Type{
		reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
		reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](),
	}
	bytesType = reflect.TypeFor[[]byte]()
)

func (b *shapeBuilder) of(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		if s, ok := b.known[t]; ok {
			return s
		}
	}
	s := &shape{t: t}
	switch {
	case slices.Contains(scalarTypes, t), t == bytesType:
	case value.TypeReflectEntryOf(t).CanConvertToUnstructured():
		s.kind = open
	case t.Kind() == reflect.Struct:
		b.known[t] = s
		s.kind = structure
		s.whole = mergestrategy.OfType(t).Kind == mergestrategy.Atomic
		b.addFields(s, t, nil)
		slices.SortFunc(s.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	case t.Kind() == reflect.Map:
		s.kind, s.elem = dictionary, b.of(t.Elem())
	case t.Kind() == reflect.Slice:
		s.kind, s.whole, s.elem = plainList, true, b.of(t.Elem())
	case t.Kind() == reflect.Interface:
		s.kind = open
	}
	return s
}

// addFields adds the members that a struct's fields become, those of embedded
// structs included.
func (b *shapeBuilder) addFields(s *shape, t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(slices.Clone(index), i)
		switch {
		case name == "-" && options == "", f.PkgPath != "" && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			b.addFields(s, f.Type, at)
			continue
		case name == "":
			name = f.Name
		}
		added := field{name: name, quoted: `"f:` + name + `"`, index: at, omitEmpty: hasOption(options, "omitempty"), unowned: slices.Contains(unowned, name)}
		if hasOption(options, "omitzero") {
			added.omitZero = value.OmitZeroFunc(f.Type)
		}
		added.shape = b.fieldShape(s, name, f.Type)
		s.fields = append(s.fields, added)
	}
}

func hasOption(options, want string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == want {
			return true
		}
	}
	return false
}

// fieldShape is the shape of a field's type, with what the table says about the
// field.
func (b *shapeBuilder) fieldShape(parent *shape, name string, t reflect.Type) *shape {
	s := b.of(t)
	strategy := mergestrategy.OfField(parent.t, name)
	if strategy.Kind == mergestrategy.Unmarked {
		return s
	}
	own := *s
	switch strategy.Kind {
	case mergestrategy.Atomic:
		own.whole = true
	case mergestrategy.Granular:
		own.whole = false
	case mergestrategy.Set:
		own.kind, own.whole = setList, false
	case mergestrategy.Map:
		own.kind, own.whole = keyedList, false
		own.keys = make([]key, len(strategy.Keys))
	}
	return &own
}

// resolveKeys finds the members that are the keys of a struct's lists, once the
// types of their elements are complete.
func resolveKeys(s *shape) {
	for i := range s.fields {
		list := s.fields[i].shape
		if list.kind != keyedList {
			continue
		}
		names := slices.Clone(mergestrategy.OfField(s.t, s.fields[i].name).Keys)
		slices.Sort(names)
		for j, name := range names {
			list.keys[j] = key{field: list.elem.field(name)}
			list.keys[j].fallback = defaultKey(list.elem, list.keys[j].field)
		}
	}
}

// field returns the member with that name, or nil.
func (s *shape) field(name string) *field {
	i, ok := slices.BinarySearchFunc(s.fields, name, func(f field, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		return nil
	}
	return &s.fields[i]
}

// defaultKey is what an absent member of a key counts as: what the table says, or
// its type's zero value if it is a member that is never left out.
func defaultKey(element *shape, f *field) any {
	if strategy := mergestrategy.OfField(element.t, f.name); strategy.Kind == mergestrategy.KeyDefault {
		return strategy.Default
	}
	switch kind := f.shape.t.Kind(); {
	case f.omitEmpty || f.omitZero != nil:
		return nil
	case kind == reflect.String:
		return ""
	case kind == reflect.Int32, kind == reflect.Int64:
		return 0
	}
	return nil
}
