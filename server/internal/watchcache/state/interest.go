package state

import "github.com/levelwire/levelwire/server/internal/resource"

// Interest is one equality of a selection by which the events that it can want
// are found. Watchers whose selections contain the same interest share a bucket.
type Interest struct {
	Kind  InterestKind
	Field int    // index of the field, for ByField
	Label string // key of the label, for ByLabel
	Value string
}

// InterestKind says what an Interest compares.
type InterestKind uint8

// The kinds of interests, from the one that is likely to be the narrowest to the
// widest.
const (
	ByKey InterestKind = iota
	ByName
	ByField
	ByLabel
	ByNamespace
	ByNothing // every object
)

// Interests lists the interests of which each alone finds every event that the
// selection can want, those likely to be narrow first. There are none if the
// selection has no equality.
func (s *Selection) Interests(namespaced bool) []Interest {
	if s == nil {
		return nil
	}
	var list []Interest
	switch {
	case s.Name != "" && !namespaced:
		list = append(list, Interest{Kind: ByKey, Value: s.Name})
	case s.Name != "" && s.Namespace != "":
		list = append(list, Interest{Kind: ByKey, Value: s.Namespace + "/" + s.Name})
	case s.Name != "":
		list = append(list, Interest{Kind: ByName, Value: s.Name})
	}
	for _, c := range s.fields {
		if !c.negate {
			list = append(list, Interest{Kind: ByField, Field: c.index, Value: c.value})
		}
	}
	for _, c := range s.labels {
		if c.isEquality() {
			list = append(list, Interest{Kind: ByLabel, Label: c.key, Value: c.single})
		}
	}
	if s.Namespace != "" && namespaced {
		list = append(list, Interest{Kind: ByNamespace, Value: s.Namespace})
	}
	return list
}

// Holds reports whether an object has the value.
func (i *Interest) Holds(o *Object, stored *resource.Resource) bool {
	switch i.Kind {
	case ByKey:
		return o.Key == i.Value
	case ByName:
		return o.Attributes.Name == i.Value
	case ByField:
		return FieldOf(stored, o, i.Field) == i.Value
	case ByLabel:
		value, ok := o.Attributes.Labels.Lookup(i.Label)
		return ok && value == i.Value
	case ByNamespace:
		return o.Attributes.Namespace == i.Value
	}
	return true
}
