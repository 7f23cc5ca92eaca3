package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/shard"
)

// Selection is a compiled namespace, name, label and field selector, and shard,
// of one resource. It is made by NewSelection, immutable from then on, and matches
// without allocation. A nil *Selection selects everything.
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
	within     *Namespaces     // nil for all
}

// condition compares a string.
type condition struct {
	value  string
	negate bool // holds for every other string
}

func (c condition) holds(value string) bool { return (value == c.value) != c.negate }

// fieldCondition compares Attributes.Fields[index].
type fieldCondition struct {
	condition
	index int
	// everFailed is set if an object for which the condition does not hold is one
	// for which it has never held: the field is final once it is set.
	everFailed bool
}

// labelCondition is one requirement of a label selector.
type labelCondition struct {
	key      string
	operator selection.Operator
	values   sets.Set[string]
	single   string // the only value, if values is nil
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

// Within returns the part of the selection that is in a shard; nil means all of
// it. A name changes shards only when an object with another UID replaces the
// object, which watchers see as a transition like any other.
func (s *Selection) Within(shard *shard.Selector) *Selection {
	out := *s
	out.shard = shard
	return &out
}

// InNamespaces returns the part of the selection that is in a set of namespaces, which is
// empty if it is nil. The selection must not be nil.
func (s *Selection) InNamespaces(set *Namespaces) *Selection {
	if set == nil {
		set = &Namespaces{}
	}
	if set.All() {
		return s
	}
	out := *s
	out.within = set
	return &out
}

// InNamespace returns the part of the selection that is in one namespace. The selection
// must not be nil.
func (s *Selection) InNamespace(namespace string) *Selection {
	out := *s
	if out.Namespace != "" && out.Namespace != namespace {
		out.nothing = true
	}
	out.Namespace = namespace
	return &out
}

func (s *Selection) compileFields(res *resource.Resource) error {
	for _, r := range s.Fields.Requirements() {
		c := condition{value: r.Value, negate: r.Operator == selection.NotEquals}
		switch {
		case r.Field == "metadata.name":
			s.Name = narrow(s.Name, c, &s.names)
		case r.Field == "metadata.namespace" && res.Namespaced:
			s.Namespace = narrow(s.Namespace, c, &s.namespaces)
		case r.Field == "metadata.namespace":
			s.namespaces = append(s.namespaces, c) // compared with the empty namespace
		case res.HasEmptyField(r.Field):
			s.nothing = s.nothing || !c.holds("")
		default:
			index, ok := res.FieldIndex(r.Field)
			if !ok {
				return &UnknownFieldError{Field: r.Field, Resource: res.GroupResource().String(), Selectable: selectable(res)}
			}
			c := fieldCondition{condition: c, index: index}
			if field := s.stored.Fields; index < len(field) && field[index].Final {
				c.everFailed = !c.holds(field[index].Default)
			}
			s.fields = append(s.fields, c)
		}
	}
	return nil
}

// UnknownFieldError is a field selector that names a field by which the resource
// cannot be selected.
type UnknownFieldError struct {
	Field      string
	Resource   string
	Selectable []string // what may be named, in order
}

// Error lists the fields that are selectable.
func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("field label not supported: %q is not selectable for %s: use one of %s",
		e.Field, e.Resource, strings.Join(e.Selectable, ", "))
}

// narrow returns the condition's value if it is an equality and the selection
// has no name, or namespace, yet; otherwise it adds it to the conditions.
func narrow(have string, c condition, conditions *[]condition) string {
	if have == "" && !c.negate && c.value != "" {
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
			c.single = values[0]
		} else {
			c.values = sets.New(values...)
		}
		switch c.operator {
		case selection.DoubleEquals, selection.Equals:
			c.operator = selection.Equals
		case selection.GreaterThan, selection.LessThan:
			bound, err := strconv.ParseInt(c.single, 10, 64)
			if err != nil {
				return fmt.Errorf("label selector: %q must be compared with an integer: %w", c.key, err)
			}
			c.bound = bound
		}
		s.labels = append(s.labels, c)
	}
	return nil
}

// Everything reports whether every object is selected.
func (s *Selection) Everything() bool {
	return s == nil || s.Namespace == "" && s.Name == "" && !s.nothing && s.shard == nil && s.within == nil &&
		len(s.namespaces)+len(s.names)+len(s.fields)+len(s.labels) == 0
}

// Filters reports whether a label, field or shard selector, or a set of namespaces,
// rather than only the namespace and name, decides what is selected. How many objects
// remain after a page is then unknown until they are read.
func (s *Selection) Filters() bool { return s.filtersObjects() || s != nil && s.within != nil }

// filtersObjects reports whether each object has to be looked at, wherever it is.
func (s *Selection) filtersObjects() bool {
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
		if c := &s.fields[i]; !c.holds(FieldOf(s.stored, o, c.index)) {
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

// matchesIdentity reports whether an object is selected by name, namespace and
// UID, which stay the same for as long as the object exists.
func (s *Selection) matchesIdentity(a *resource.Attributes) bool {
	if s.nothing || s.Namespace != "" && a.Namespace != s.Namespace || s.Name != "" && a.Name != s.Name {
		return false
	}
	if s.within != nil && !s.within.Has(a.Namespace) {
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

// FieldOf returns the value of a selectable field. It reads the JSON only if the
// field became selectable after the object had entered the cache.
func FieldOf(stored *resource.Resource, o *Object, index int) string {
	if index < len(o.Attributes.Fields) {
		return o.Attributes.Fields[index]
	}
	return stored.LateField(o.JSON(), index)
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

// integer parses a label value. For most values that are no numbers it allocates
// no error.
func integer(value string) (int64, bool) {
	if value == "" || (value[0] < '0' || value[0] > '9') && value[0] != '-' && value[0] != '+' {
		return 0, false
	}
	number, err := strconv.ParseInt(value, 10, 64)
	return number, err == nil
}

// isEquality reports whether the condition holds for exactly one value.
func (c *labelCondition) isEquality() bool {
	return c.values == nil && (c.operator == selection.Equals || c.operator == selection.In)
}

func (c *labelCondition) among(value string) bool {
	if c.values == nil {
		return value == c.single
	}
	return c.values.Has(value)
}
