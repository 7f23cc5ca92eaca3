package fieldmanager

import (
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/levelwire/levelwire/server/internal/resource/structequal"
)

// change is what became of a field.
type change uint8

const (
	added change = iota
	modified
	removed
)

// recorder receives the changes between two objects, each parent before what
// is in it. The path is only valid during the call.
type recorder interface {
	record(path []step, what change)
	// leave says that what follows is not in path any more, but for its
	// parents.
	leave(path []step)
}

// step is one element of a path: a member or map entry, or an element of a list,
// whose key pathElement reads from it when it is first called.
type step struct {
	name    *string
	quoted  string        // of a struct's member
	list    *typeInfo     // nil for a member
	element reflect.Value // of list

	made fieldpath.PathElement // see pathElement
}

// differ compares two objects as structured-merge-diff does, without making a
// tree of either: along the typeInfo of their Go type. It gives up, unsure, where
// the type says too little: in arbitrary JSON, and in lists with two elements
// of the same key.
type differ struct {
	to     recorder
	path   []step
	unsure bool
	// ignoreStatus leaves out the status.
	ignoreStatus bool
}

// objects compares two structs of a type, without the members that no manager
// can own.
func (d *differ) objects(s *typeInfo, before, after reflect.Value) {
	for i := range s.fields {
		f := &s.fields[i]
		switch {
		case f.name == "apiVersion" || f.name == "kind" || f.name == "status" && d.ignoreStatus:
			continue
		case f.name == "metadata" && f.info.kind == structKind:
			d.push(step{name: &f.name, quoted: f.quoted})
			d.metadata(f.info, before.FieldByIndex(f.index), after.FieldByIndex(f.index))
			d.pop()
		default:
			d.member(f, before, after)
		}
	}
}

func (d *differ) metadata(s *typeInfo, before, after reflect.Value) {
	for i := range s.fields {
		if f := &s.fields[i]; !f.unowned {
			d.member(f, before, after)
		}
	}
}

// member compares a field of two structs, either of which may be invalid: not
// there. It returns whether either has the field.
func (d *differ) member(f *field, before, after reflect.Value) bool {
	a, b := f.of(before), f.of(after)
	if !a.IsValid() && !b.IsValid() {
		return false
	}
	d.push(step{name: &f.name, quoted: f.quoted})
	d.compare(f.info, a, b)
	d.pop()
	return true
}

// of returns the field of a struct, or an invalid value where its JSON form has
// no such member.
func (f *field) of(parent reflect.Value) reflect.Value {
	if !parent.IsValid() {
		return parent
	}
	var v reflect.Value
	if len(f.index) == 1 {
		v = parent.Field(f.index[0])
	} else {
		v = parent.FieldByIndex(f.index)
	}
	if f.omitEmpty && isEmpty(v) || f.omitZero != nil && f.omitZero(v) {
		return reflect.Value{}
	}
	return v
}

// isEmpty is what encoding/json leaves out as empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func (d *differ) push(s step) { d.path = append(d.path, s) }

func (d *differ) pop() {
	d.to.leave(d.path)
	d.path = d.path[:len(d.path)-1]
}

// compare compares two values of a type, either of which, but not both, may be
// invalid: not there. A nil pointer, map or list is there, and null.
func (d *differ) compare(s *typeInfo, before, after reflect.Value) {
	switch {
	case !before.IsValid():
		d.to.record(d.path, added)
	case !after.IsValid():
		d.to.record(d.path, removed)
	}
	switch {
	case s.kind != scalarKind && before.IsValid() && after.IsValid() && structequal.Identical(before, after):
		// Nothing in it has changed, whatever the type says of its parts.
	case s.kind == anyKind:
		d.unsure = d.unsure || !before.IsValid() || !after.IsValid() || !reflect.DeepEqual(before.Interface(), after.Interface())
	case s.kind == scalarKind || s.atomic:
		d.leaf(s, before, after)
	default:
		d.parts(s, before, after)
	}
}

// leaf compares what has no parts that could be owned.
func (d *differ) leaf(s *typeInfo, before, after reflect.Value) {
	if before.IsValid() && after.IsValid() && !d.equal(s, before, after) {
		d.to.record(d.path, modified)
	}
}

// parts compares the parts of two values, or, if neither has any, whether they
// are empty or null.
func (d *differ) parts(s *typeInfo, before, after reflect.Value) {
	a, b := content(before), content(after)
	found := false
	switch s.kind {
	case structKind:
		for i := range s.fields {
			if d.member(&s.fields[i], a, b) {
				found = true
			}
		}
	case mapKind:
		found = d.entries(s, a, b)
	default:
		found = d.elements(s, a, b)
	}
	if !found && before.IsValid() && after.IsValid() && a.IsValid() != b.IsValid() {
		d.to.record(d.path, modified)
	}
}

// content returns what a value refers to, or an invalid value for null.
func content(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if k := v.Kind(); (k == reflect.Map || k == reflect.Slice) && v.IsNil() {
		return reflect.Value{}
	}
	return v
}

func (d *differ) entries(s *typeInfo, before, after reflect.Value) bool {
	var names []string
	for _, m := range []reflect.Value{before, after} {
		if m.IsValid() {
			for _, name := range m.MapKeys() {
				names = append(names, name.String())
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i := range names {
		d.push(step{name: &names[i]})
		d.compare(s.elem, entry(before, names[i]), entry(after, names[i]))
		d.pop()
	}
	return len(names) > 0
}

func entry(m reflect.Value, name string) reflect.Value {
	if !m.IsValid() {
		return m
	}
	return m.MapIndex(reflect.ValueOf(name).Convert(m.Type().Key()))
}

// elements compares two lists whose elements have keys, or are theirs.
func (d *differ) elements(s *typeInfo, before, after reflect.Value) bool {
	if inStep(s, before, after) {
		for i := range after.Len() {
			d.push(step{list: s, element: after.Index(i)})
			d.compare(s.elem, before.Index(i), after.Index(i))
			d.pop()
		}
		return after.Len() > 0
	}
	if !before.IsValid() && d.added(s, after) {
		return after.Len() > 0
	}
	a, b := d.index(s, before), d.index(s, after)
	for len(a) > 0 || len(b) > 0 {
		var x, y reflect.Value
		order := 0
		switch {
		case len(b) == 0:
			order = -1
		case len(a) == 0:
			order = 1
		default:
			order = a[0].key.Compare(b[0].key)
		}
		at := step{list: s}
		if order <= 0 {
			x, at.element, a = a[0].value, a[0].value, a[1:]
		}
		if order >= 0 {
			y, at.element, b = b[0].value, b[0].value, b[1:]
		}
		d.push(at)
		d.compare(s.elem, x, y)
		d.pop()
	}
	return before.IsValid() && before.Len() > 0 || after.IsValid() && after.Len() > 0
}

// maxInStep bounds how long a list is whose elements are compared with each
// other to find equal keys.
const maxInStep = 12

// inStep says whether two lists have the same keys in the same order, each once.
func inStep(s *typeInfo, before, after reflect.Value) bool {
	if !before.IsValid() || !after.IsValid() || s.kind != keyedListKind || s.elem.atomic {
		return false
	}
	n := after.Len()
	if before.Len() != n || n > maxInStep || n > 0 && after.Index(0).Kind() != reflect.Struct {
		return false
	}
	for i := range n {
		if !s.sameKey(before.Index(i), after.Index(i)) {
			return false
		}
		for j := range i {
			if s.sameKey(after.Index(j), after.Index(i)) {
				return false
			}
		}
	}
	return true
}

// sameKey is conservative: elements without one of their keys have none in
// common.
func (s *typeInfo) sameKey(a, b reflect.Value) bool {
	for i := range s.keys {
		x, y := s.keys[i].field.of(a), s.keys[i].field.of(b)
		if !x.IsValid() || !y.IsValid() || x.Kind() == reflect.Pointer || !equalScalars(x, y) {
			return false
		}
	}
	return true
}

// indexed is an element of a list with its key.
type indexed struct {
	key   fieldpath.PathElement
	value reflect.Value
}

// index returns a list's elements in the order of their keys.
func (d *differ) index(s *typeInfo, list reflect.Value) []indexed {
	if !list.IsValid() || list.Len() == 0 {
		return nil
	}
	out := make([]indexed, list.Len())
	for i := range out {
		out[i].value = list.Index(i)
		if out[i].value.Kind() == reflect.Pointer {
			d.unsure = true
			return nil
		}
		out[i].key = elementOf(s, out[i].value)
		if k := out[i].key.Key; k != nil && len(*k) == 0 {
			d.unsure = true
			return nil
		}
	}
	if len(out) == 1 {
		return out
	}
	byKey := func(a, b indexed) int { return a.key.Compare(b.key) }
	if !slices.IsSortedFunc(out, byKey) {
		slices.SortFunc(out, byKey)
	}
	for i := 1; i < len(out); i++ {
		if byKey(out[i-1], out[i]) == 0 {
			d.unsure = true
		}
	}
	return out
}
