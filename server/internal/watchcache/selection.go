package watchcache

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/shard"
)

// Selection says which objects of a resource a reader wants. It is compiled
// once by NewSelection, immutable from then on, and matches without
// allocation. A nil *Selection selects everything.
type Selection struct {
	Namespace string          // "" for all
	Name      string          // "" for all
	Labels    labels.Selector // never nil
	Fields    fields.Selector // never nil

	stored     *resource.Resource
	nothing    bool
	namespaces []condition // beside Namespace
	names      []condition // beside Name
	fields     []fieldCondition
	labels     []labelCondition
	shard      *shard.Selector // nil for all
}

// condition compares a string.
type condition struct {
	value  string
	differ bool // wanted: not equal
}

func (c condition) holds(value string) bool { return (value == c.value) != c.differ }

// fieldCondition compares Attributes.Fields[index].
type fieldCondition struct {
	condition
	index int
	// never: an object for which it does not hold is one for which it never has.
	never bool
}

// labelCondition is one requirement of a label selector.
type labelCondition struct {
	key      string
	operator selection.Operator
	values   sets.Set[string]
	one      string // the only value, for equality
	bound    int64  // for greater and less than
}

// NewSelection compiles a selection of objects of res: namespace and name as
// in the URL, and the two selectors, which may be nil. A name or namespace
// equality in the field selector counts as if it were in the URL; if the two
// contradict each other nothing is selected. It fails with an
// *UnknownFieldError on a field that res does not offer.
func NewSelection(res *resource.Resource, namespace, name string, ls labels.Selector, fs fields.Selector) (*Selection, error) {
	if ls == nil {
		ls = labels.Everything()
	}
	if fs == nil {
		fs = fields.Everything()
	}
	s := &Selection{Namespace: namespace, Name: name, Labels: ls, Fields: fs, stored: res.Stored()}
	if err := s.compileFields(res); err != nil {
		return nil, err
	}
	return s, s.compileLabels()
}

// Within returns the part of the selection that falls into a shard; nil is
// the whole. An object changes shards only if another of its name takes its
// place, and that is a transition like any other.
func (s *Selection) Within(part *shard.Selector) *Selection {
	out := *s
	out.shard = part
	return &out
}

func (s *Selection) compileFields(res *resource.Resource) error {
	for _, r := range s.Fields.Requirements() {
		c := condition{value: r.Value, differ: r.Operator == selection.NotEquals}
		switch {
		case r.Field == "metadata.name":
			s.Name = narrow(s.Name, c, &s.names)
		case r.Field == "metadata.namespace" && res.Namespaced:
			s.Namespace = narrow(s.Namespace, c, &s.namespaces)
		case r.Field == "metadata.namespace":
			s.namespaces = append(s.namespaces, c) // of objects that have none
		default:
			index, ok := res.FieldIndex(r.Field)
			if !ok {
				return &UnknownFieldError{Field: r.Field, Resource: res.GroupResource().String(), Selectable: selectable(res)}
			}
			c := fieldCondition{condition: c, index: index}
			if field := s.stored.Fields; index < len(field) && field[index].Final {
				c.never = !c.holds(field[index].Default)
			}
			s.fields = append(s.fields, c)
		}
	}
	return nil
}

// narrow takes an equality over as the value that the selection is found by,
// if it has none yet, and else keeps it as a condition.
func narrow(have string, c condition, conditions *[]condition) string {
	if have == "" && !c.differ && c.value != "" {
		return c.value
	}
	*conditions = append(*conditions, c)
	return have
}

func selectable(res *resource.Resource) []string {
	names := []string{"metadata.name", "metadata.namespace"}
	for _, f := range res.Fields {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

func (s *Selection) compileLabels() error {
	requirements, selects := s.Labels.Requirements()
	if !selects {
		s.nothing = true
		return nil
	}
	for _, r := range requirements {
		c := labelCondition{key: r.Key(), operator: r.Operator()}
		if values := r.Values().UnsortedList(); len(values) == 1 {
			c.one = values[0]
		} else {
			c.values = sets.New(values...)
		}
		switch c.operator {
		case selection.DoubleEquals, selection.Equals:
			c.operator = selection.Equals
		case selection.GreaterThan, selection.LessThan:
			bound, err := strconv.ParseInt(c.one, 10, 64)
			if err != nil {
				return fmt.Errorf("label selector: %q must be compared with an integer: %w", c.key, err)
			}
			c.bound = bound
		}
		s.labels = append(s.labels, c)
	}
	return nil
}

// Everything reports whether no object is left out.
func (s *Selection) Everything() bool {
	return s == nil || s.Namespace == "" && s.Name == "" && !s.nothing && s.shard == nil &&
		len(s.namespaces)+len(s.names)+len(s.fields)+len(s.labels) == 0
}

// Filters reports whether a label, field or shard selector, rather than only the
// namespace and name, decides what is selected: how many objects remain after
// a page can then not be known without reading them.
func (s *Selection) Filters() bool {
	return s != nil && (s.nothing || s.shard != nil || len(s.namespaces)+len(s.names)+len(s.fields)+len(s.labels) > 0)
}

// Matches reports whether the object is selected.
func (s *Selection) Matches(o *Object) bool {
	if s == nil {
		return true
	}
	a := &o.Attributes
	if !s.matchesIdentity(a) {
		return false
	}
	for i := range s.fields {
		if c := &s.fields[i]; !c.holds(fieldOf(s.stored, o, c.index)) {
			return false
		}
	}
	for i := range s.labels {
		if !s.labels[i].holds(a.Labels) {
			return false
		}
	}
	return true
}

// matchesIdentity reports whether an object is selected as far as its name,
// namespace and UID go: what of it stays the same as long as it lives.
func (s *Selection) matchesIdentity(a *resource.Attributes) bool {
	if s.nothing || s.Namespace != "" && a.Namespace != s.Namespace || s.Name != "" && a.Name != s.Name {
		return false
	}
	for _, c := range s.names {
		if !c.holds(a.Name) {
			return false
		}
	}
	for _, c := range s.namespaces {
		if !c.holds(a.Namespace) {
			return false
		}
	}
	return s.shard.Matches(a.UID, a.Namespace)
}

// fieldOf returns the value of a selectable field. It is at hand unless the
// field became selectable after the object had entered the cache.
func fieldOf(stored *resource.Resource, o *Object, index int) string {
	if index < len(o.Attributes.Fields) {
		return o.Attributes.Fields[index]
	}
	return stored.LateField(o.JSON, index)
}

func (c *labelCondition) holds(set resource.Labels) bool {
	value, ok := set.Lookup(c.key)
	switch c.operator {
	case selection.Equals, selection.In:
		return ok && c.among(value)
	case selection.NotEquals, selection.NotIn:
		return !ok || !c.among(value)
	case selection.Exists:
		return ok
	case selection.DoesNotExist:
		return !ok
	case selection.GreaterThan, selection.LessThan:
		number, isNumber := integer(value)
		if !ok || !isNumber {
			return false
		}
		return c.operator == selection.GreaterThan && number > c.bound || c.operator == selection.LessThan && number < c.bound
	}
	return false
}

// integer parses a label value. Most that are no numbers are told apart
// without making an error.
func integer(value string) (int64, bool) {
	if value == "" || (value[0] < '0' || value[0] > '9') && value[0] != '-' && value[0] != '+' {
		return 0, false
	}
	number, err := strconv.ParseInt(value, 10, 64)
	return number, err == nil
}

// isEquality reports whether the condition wants exactly one value.
func (c *labelCondition) isEquality() bool {
	return c.values == nil && (c.operator == selection.Equals || c.operator == selection.In)
}

func (c *labelCondition) among(value string) bool {
	if c.values == nil {
		return value == c.one
	}
	return c.values.Has(value)
}
