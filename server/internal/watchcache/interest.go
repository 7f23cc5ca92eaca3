package watchcache

import (
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// An interest is one equality that an event can be found by. Watchers whose
// selections contain it share a bucket.
type interest struct {
	kind  interestKind
	index int    // of the field
	label string // key of the label
	value string
}

type interestKind uint8

// The kinds, from the one that is likely to be the narrowest to the widest.
const (
	byKey interestKind = iota
	byName
	byField
	byLabel
	byNamespace
	byNothing // everything
)

// interests lists the interests of which each alone finds every event that
// the selection can want, those likely to be narrow first.
func (s *Selection) interests(namespaced bool) []interest {
	if s == nil {
		return nil
	}
	var list []interest
	switch {
	case s.Name != "" && !namespaced:
		list = append(list, interest{kind: byKey, value: s.Name})
	case s.Name != "" && s.Namespace != "":
		list = append(list, interest{kind: byKey, value: s.Namespace + "/" + s.Name})
	case s.Name != "":
		list = append(list, interest{kind: byName, value: s.Name})
	}
	for _, c := range s.fields {
		if !c.differ {
			list = append(list, interest{kind: byField, index: c.index, value: c.value})
		}
	}
	for _, c := range s.labels {
		if c.isEquality() {
			list = append(list, interest{kind: byLabel, label: c.key, value: c.one})
		}
	}
	if s.Namespace != "" && namespaced {
		list = append(list, interest{kind: byNamespace, value: s.Namespace})
	}
	return list
}

// touches reports whether the event is in the interest's bucket: whether its old or its new state is.
func (i *interest) touches(e *entry, stored *resource.Resource) bool {
	return e.object != nil && i.holds(e.object, stored) || e.previous != nil && i.holds(e.previous, stored)
}

func (i *interest) holds(o *Object, stored *resource.Resource) bool {
	switch i.kind {
	case byKey:
		return o.Key == i.value
	case byName:
		return o.Attributes.Name == i.value
	case byField:
		return fieldOf(stored, o, i.index) == i.value
	case byLabel:
		value, ok := o.Attributes.Labels.Lookup(i.label)
		return ok && value == i.value
	case byNamespace:
		return o.Attributes.Namespace == i.value
	}
	return true
}

// index finds the buckets that an event belongs to at a cost that does not
// depend on how many there are. The cache's lock guards it.
type index struct {
	stored     *resource.Resource
	keys       map[string]*bucket
	names      map[string]*bucket
	namespaces map[string]*bucket
	fields     []map[string]*bucket // by field index; nil where nobody asks
	labels     map[string]map[string]*bucket
}

// table returns the map that an interest's bucket is in, made if need be.
func (x *index) table(i *interest) map[string]*bucket {
	switch i.kind {
	case byKey:
		return made(&x.keys)
	case byName:
		return made(&x.names)
	case byField:
		if i.index >= len(x.fields) {
			x.fields = append(x.fields, make([]map[string]*bucket, i.index+1-len(x.fields))...)
		}
		return made(&x.fields[i.index])
	case byLabel:
		table := made(&x.labels)[i.label]
		if table == nil {
			table = map[string]*bucket{}
			x.labels[i.label] = table
		}
		return table
	default:
		return made(&x.namespaces)
	}
}

func made[V any](m *map[string]V) map[string]V {
	if *m == nil {
		*m = map[string]V{}
	}
	return *m
}

// remove takes a bucket out.
func (x *index) remove(b *bucket) {
	table := x.table(&b.interest)
	delete(table, b.interest.value)
	if b.interest.kind == byLabel && len(table) == 0 {
		delete(x.labels, b.interest.label)
	}
}

// find appends the buckets that the event belongs to, each once.
func (x *index) find(e *entry, found []*bucket) []*bucket {
	one := e.object // namespace and name never change
	if one == nil {
		one = e.previous
	}
	if b := x.keys[one.Key]; b != nil {
		found = append(found, b)
	}
	if b := x.names[one.Attributes.Name]; b != nil {
		found = append(found, b)
	}
	if b := x.namespaces[one.Attributes.Namespace]; b != nil {
		found = append(found, b)
	}
	for i, table := range x.fields {
		if len(table) > 0 {
			found = findBoth(e, found, func(o *Object) *bucket { return table[fieldOf(x.stored, o, i)] })
		}
	}
	if len(x.labels) > 0 {
		start := len(found)
		if e.object != nil {
			found = x.findLabels(e.object, found, start)
		}
		if e.previous != nil {
			found = x.findLabels(e.previous, found, start)
		}
	}
	return found
}

// findLabels goes by the labels that the object has, of which there are few
// however many are watched.
func (x *index) findLabels(o *Object, found []*bucket, start int) []*bucket {
	for _, l := range o.Attributes.Labels {
		if b := x.labels[l.Key][l.Value]; b != nil && !slices.Contains(found[start:], b) {
			found = append(found, b)
		}
	}
	return found
}

// findBoth looks the old and the new state up: a watcher has to hear of what
// leaves its view as well.
func findBoth(e *entry, found []*bucket, lookup func(*Object) *bucket) []*bucket {
	var first *bucket
	if e.object != nil {
		if first = lookup(e.object); first != nil {
			found = append(found, first)
		}
	}
	if e.previous != nil {
		if b := lookup(e.previous); b != nil && b != first {
			found = append(found, b)
		}
	}
	return found
}

// each calls visit with every bucket.
func (x *index) each(visit func(*bucket)) {
	tables := slices.Concat([]map[string]*bucket{x.keys, x.names, x.namespaces}, x.fields)
	for _, table := range x.labels {
		tables = append(tables, table)
	}
	for _, table := range tables {
		for _, b := range table {
			visit(b)
		}
	}
}
