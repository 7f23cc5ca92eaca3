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

	"github.com/levelwire/levelwire/internal/wirefield"
	"github.com/levelwire/levelwire/server/internal/resource/mergestrategy"
)

// typeInfo is what a Go type is to field ownership. A typeInfo is immutable and may
// refer to itself, as types do.
type typeInfo struct {
	kind   infoKind
	t      reflect.Type // without pointers
	atomic bool         // structs, maps and lists that are one leaf
	fields []field      // of a struct, in the order of their names
	elem   *typeInfo    // of a map or list
	keys   []key        // of a keyed list, in the order of their names
}

type infoKind uint8

const (
	scalarKind infoKind = iota // anything that JSON has no parts for
	structKind
	mapKind
	listKind
	keyedListKind
	setKind
	anyKind // arbitrary JSON
)

// field is one member of a struct's JSON form.
type field struct {
	name      string
	quoted    string // as a member name of FieldsV1
	index     []int  // as for reflect.Value.FieldByIndex; embedded structs are not pointers
	omitEmpty bool
	omitZero  func(reflect.Value) bool
	info      *typeInfo
	// unowned members of ObjectMeta have no owner, in the metadata of an object
	// itself.
	unowned bool
}

// unowned are the members of ObjectMeta that no manager can own.
var unowned = []string{
	"creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid",
}

// key is one of the members that identify an element of a keyed list.
type key struct {
	field *field
	// fallback is the value of an absent member; nil if it then is no part of
	// the key.
	fallback any
}

var typeInfos sync.Map // reflect.Type -> *typeInfo; one entry per kind in the binary

// typeInfoOf returns the typeInfo of a struct type.
func typeInfoOf(t reflect.Type) *typeInfo {
	if s, ok := typeInfos.Load(t); ok {
		return s.(*typeInfo)
	}
	b := infoBuilder{known: map[reflect.Type]*typeInfo{}}
	built := b.of(t)
	for _, known := range b.known {
		resolveKeys(known)
	}
	s, _ := typeInfos.LoadOrStore(t, built)
	return s.(*typeInfo)
}

// infoBuilder knows the types that it has begun with.
type infoBuilder struct {
	known map[reflect.Type]*typeInfo
}

var (
	scalarTypes = []reflect.Type{
		reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
		reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](),
	}
	bytesType = reflect.TypeFor[[]byte]()
)

func (b *infoBuilder) of(t reflect.Type) *typeInfo {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		if s, ok := b.known[t]; ok {
			return s
		}
	}
	s := &typeInfo{t: t}
	switch {
	case slices.Contains(scalarTypes, t), t == bytesType:
	case value.TypeReflectEntryOf(t).CanConvertToUnstructured():
		s.kind = anyKind
	case t.Kind() == reflect.Struct:
		b.known[t] = s
		s.kind = structKind
		s.atomic = mergestrategy.OfType(t).Kind == mergestrategy.Atomic
		b.addFields(s, t)
		slices.SortFunc(s.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	case t.Kind() == reflect.Map:
		s.kind, s.elem = mapKind, b.of(t.Elem())
	case t.Kind() == reflect.Slice:
		s.kind, s.atomic, s.elem = listKind, true, b.of(t.Elem())
	case t.Kind() == reflect.Interface:
		s.kind = anyKind
	}
	return s
}

// addFields adds the members of a struct's JSON object.
func (b *infoBuilder) addFields(s *typeInfo, t reflect.Type) {
	for _, m := range wirefield.Members(t) {
		added := field{
			name: m.Name, quoted: `"f:` + m.Name + `"`, index: m.Go.Index, omitEmpty: m.OmitEmpty, unowned: slices.Contains(unowned, m.Name),
		}
		if m.OmitZero {
			added.omitZero = value.OmitZeroFunc(m.Go.Type)
		}
		added.info = b.fieldInfo(s, m.Name, m.Go.Type)
		s.fields = append(s.fields, added)
	}
}

// fieldInfo is the typeInfo of a field, with what the table says about the
// field.
func (b *infoBuilder) fieldInfo(parent *typeInfo, name string, t reflect.Type) *typeInfo {
	s := b.of(t)
	strategy := mergestrategy.OfField(parent.t, name)
	if strategy.Kind == mergestrategy.Unmarked {
		return s
	}
	own := *s
	switch strategy.Kind {
	case mergestrategy.Atomic:
		own.atomic = true
	case mergestrategy.Granular:
		own.atomic = false
	case mergestrategy.Set:
		own.kind, own.atomic = setKind, false
	case mergestrategy.Map:
		own.kind, own.atomic = keyedListKind, false
		own.keys = make([]key, len(strategy.Keys))
	}
	return &own
}

// resolveKeys finds the members that are the keys of a struct's lists, once the
// types of their elements are complete.
func resolveKeys(s *typeInfo) {
	for i := range s.fields {
		list := s.fields[i].info
		if list.kind != keyedListKind {
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
func (s *typeInfo) field(name string) *field {
	i, ok := slices.BinarySearchFunc(s.fields, name, func(f field, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		return nil
	}
	return &s.fields[i]
}

// defaultKey is what an absent member of a key counts as: what the table says, or
// its type's zero value if it is a member that is never left out.
func defaultKey(element *typeInfo, f *field) any {
	if strategy := mergestrategy.OfField(element.t, f.name); strategy.Kind == mergestrategy.KeyDefault {
		return strategy.Default
	}
	switch kind := f.info.t.Kind(); {
	case f.omitEmpty || f.omitZero != nil:
		return nil
	case kind == reflect.String:
		return ""
	case kind == reflect.Int32, kind == reflect.Int64:
		return 0
	}
	return nil
}
