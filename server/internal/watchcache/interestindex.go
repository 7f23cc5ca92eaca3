package watchcache

import (
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
)

// touches reports whether the event belongs in the interest's bucket: whether the
// object had the interest's value before the event or has it after.
func touches(i *state.Interest, e *eventlog.Entry, stored *resource.Resource) bool {
	return e.Object != nil && i.Holds(e.Object, stored) || e.Previous != nil && i.Holds(e.Previous, stored)
}

// interestIndex finds the buckets that an event belongs in, at a cost that does
// not depend on how many buckets there are. The cache's lock guards it.
type interestIndex struct {
	stored     *resource.Resource
	keys       map[string]*bucket
	names      map[string]*bucket
	namespaces map[string]*bucket
	fields     []map[string]*bucket // by field index; nil for fields without a bucket
	labels     map[string]map[string]*bucket
}

// table returns the map that an interest's bucket is in, and makes it if there is
// none.
func (x *interestIndex) table(i *state.Interest) map[string]*bucket {
	switch i.Kind {
	case state.ByKey:
		return made(&x.keys)
	case state.ByName:
		return made(&x.names)
	case state.ByField:
		if i.Field >= len(x.fields) {
			x.fields = append(x.fields, make([]map[string]*bucket, i.Field+1-len(x.fields))...)
		}
		return made(&x.fields[i.Field])
	case state.ByLabel:
		table := made(&x.labels)[i.Label]
		if table == nil {
			table = map[string]*bucket{}
			x.labels[i.Label] = table
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

// remove removes a bucket.
func (x *interestIndex) remove(b *bucket) {
	table := x.table(&b.interest)
	delete(table, b.interest.Value)
	if b.interest.Kind == state.ByLabel && len(table) == 0 {
		delete(x.labels, b.interest.Label)
	}
}

// find appends the buckets that the event belongs in, each once.
func (x *interestIndex) find(e *eventlog.Entry, found []*bucket) []*bucket {
	one := e.Object // namespace and name never change
	if one == nil {
		one = e.Previous
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
			found = findBoth(e, found, func(o *Object) *bucket { return table[state.FieldOf(x.stored, o, i)] })
		}
	}
	if len(x.labels) > 0 {
		if e.Object != nil {
			found = x.findLabels(e.Object, nil, found)
		}
		if e.Previous != nil {
			found = x.findLabels(e.Previous, e.Object, found)
		}
	}
	return found
}

// findLabels looks up the labels that the object has, but for those that another one has, too, if that
// is not nil: they are few, however many are watched. (And if they are many, and all are watched, what was
// found is not searched for each.)
func (x *interestIndex) findLabels(o, but *Object, found []*bucket) []*bucket {
	for _, l := range o.Attributes.Labels {
		b := x.labels[l.Key][l.Value]
		if b == nil {
			continue
		}
		if but != nil {
			if value, ok := but.Attributes.Labels.Lookup(l.Key); ok && value == l.Value {
				continue
			}
		}
		found = append(found, b)
	}
	return found
}

// findBoth looks up the old and the new state: a watcher also needs the events by
// which objects leave its selection.
func findBoth(e *eventlog.Entry, found []*bucket, lookup func(*Object) *bucket) []*bucket {
	var first *bucket
	if e.Object != nil {
		if first = lookup(e.Object); first != nil {
			found = append(found, first)
		}
	}
	if e.Previous != nil {
		if b := lookup(e.Previous); b != nil && b != first {
			found = append(found, b)
		}
	}
	return found
}

// each calls visit with every bucket.
func (x *interestIndex) each(visit func(*bucket)) {
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
