package fieldmanager

import (
	"cmp"
	"reflect"
	"strings"
)

// added is elements for a short list that is new, as all lists of a new object
// are: its elements are put in order by reading their keys where they are. It
// returns false, and has done nothing, if that is not possible.
func (d *differ) added(s *typeInfo, list reflect.Value) bool {
	if s.kind != keyedListKind || !list.IsValid() || list.Len() > maxInStep || s.elem.t.Kind() != reflect.Struct ||
		list.Type().Elem().Kind() == reflect.Pointer {
		return false
	}
	var order [maxInStep]int
	n := list.Len()
	for i := range n {
		at := i
		for ; at > 0; at-- {
			c, ok := s.compareKeys(list.Index(i), list.Index(order[at-1]))
			if !ok || c == 0 {
				return false
			}
			if c > 0 {
				break
			}
			order[at] = order[at-1]
		}
		order[at] = i
	}
	if n == 1 {
		// A single element is compared with none: whether it has its keys has
		// not been seen yet.
		if _, ok := s.compareKeys(list.Index(0), list.Index(0)); !ok {
			return false
		}
	}
	for _, i := range order[:n] {
		element := list.Index(i)
		d.push(step{list: s, element: element})
		d.compare(s.elem, reflect.Value{}, element)
		d.pop()
	}
	return true
}

// compareKeys orders two elements by their keys. It is not ok unless both have
// them all, as texts or numbers.
func (s *typeInfo) compareKeys(a, b reflect.Value) (order int, ok bool) {
	for i := range s.keys {
		x, y := s.keys[i].field.of(a), s.keys[i].field.of(b)
		if !x.IsValid() || !y.IsValid() || x.Kind() != y.Kind() {
			return 0, false
		}
		c := 0
		switch {
		case x.Kind() == reflect.String:
			c = strings.Compare(x.String(), y.String())
		case x.CanInt():
			c = cmp.Compare(x.Int(), y.Int())
		default:
			return 0, false
		}
		if order == 0 {
			order = c
		}
	}
	return order, len(s.keys) > 0
}
