package resource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// Attributes are what selectors look at and what the cache indexes by. They
// are extracted once, when an object enters the cache. Their strings share
// the memory of the JSON they were extracted from, which must never change
// and lives as long as they do; clone a string to keep it longer.
type Attributes struct {
	Namespace string // "" if cluster-scoped
	Name      string
	UID       string
	Labels    Labels
	// Fields are the values of the stored resource's Fields, in their order.
	Fields []string
}

// Clone returns the attributes with strings of their own, which lie in one.
func (a Attributes) Clone() Attributes {
	size := len(a.Namespace) + len(a.Name) + len(a.UID)
	for _, l := range a.Labels {
		size += len(l.Key) + len(l.Value)
	}
	for _, value := range a.Fields {
		size += len(value)
	}
	var text strings.Builder
	text.Grow(size) // once: what is cut from it stays in place
	clone := func(s string) string {
		start := text.Len()
		text.WriteString(s)
		return text.String()[start:]
	}
	out := Attributes{Namespace: clone(a.Namespace), Name: clone(a.Name), UID: clone(a.UID), Labels: slices.Clone(a.Labels), Fields: slices.Clone(a.Fields)}
	for i, l := range out.Labels {
		out.Labels[i] = Label{Key: clone(l.Key), Value: clone(l.Value)}
	}
	for i, value := range out.Fields {
		out.Fields[i] = clone(value)
	}
	return out
}

// Attributes extracts the attributes of an object from its stored or cached
// JSON form, in one pass and without decoding the rest. It fails if the JSON
// is malformed as far as it had to be read, or if there is no name. That
// namespace and name agree with the key is for the caller to check. The
// result shares json's memory. For a resource that is shown over another
// one, json and the result are the stored one's.
func (r *Resource) Attributes(json []byte) (Attributes, error) {
	stored := r.Stored()
	plan := stored.extraction()
	x := extractor{scan: jsonscan.Scanner{Data: json}, plan: plan, mixed: stored.Mixed}
	if n := len(plan.fields); n > 0 {
		x.out.Fields = make([]string, n)
	}
	if plan.ranked {
		x.ranks = make([]int, len(plan.fields))
	}
	if err := x.root(); err != nil {
		return Attributes{}, fmt.Errorf("extract attributes of %s: %w", stored.GroupResource(), err)
	}
	if x.out.Name == "" {
		return Attributes{}, fmt.Errorf("extract attributes of %s: metadata.name is missing", stored.GroupResource())
	}
	for i := range plan.fields {
		if x.out.Fields[i] == "" {
			x.out.Fields[i] = plan.fields[i].Default
		}
	}
	return x.out, nil
}

// Select makes more fields of a mixed resource selectable, while it is served.
// Those it has keep their places; those it has already are left out. Objects
// whose Attributes were extracted before have fewer Fields: see LateField.
func (r *Resource) Select(fields ...Field) {
	for {
		old := r.extraction()
		all := slices.Clip(slices.Clone(old.fields))
		for _, f := range fields {
			if !slices.ContainsFunc(all, func(has Field) bool { return has.Name == f.Name }) {
				all = append(all, f)
			}
		}
		if len(all) == len(old.fields) || r.plan.CompareAndSwap(old, r.compile(all)) {
			return
		}
	}
}

// LateField returns the value of a field for an object whose Attributes are
// older than the field, from its stored or cached JSON. It costs a pass over
// the object.
func (r *Resource) LateField(json []byte, index int) string {
	late, err := r.Attributes(json)
	if err != nil || index >= len(late.Fields) {
		return "" // it could be read when it entered the cache
	}
	return late.Fields[index]
}

// FieldIndex returns where Attributes.Fields holds the named field. It is
// false for fields that cannot be selected, and for metadata.name and
// metadata.namespace, which are Attributes of their own.
func (r *Resource) FieldIndex(name string) (int, bool) {
	fields := r.Fields
	if r.Mixed {
		fields = r.extraction().fields
	}
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 || r.Storage == nil {
		return i, i >= 0
	}
	stored := r.Fields[i].Stored
	if stored == "" {
		stored = name
	}
	return r.Storage.FieldIndex(stored)
}

// The fields by which objects of every kind are selected.
const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// FieldLabel returns the name in Fields of what a field selector names. It fails, in
// Kubernetes' words, if the selector must not name it.
func (r *Resource) FieldLabel(name string) (string, error) {
	if field, ok := r.FieldLabels.Aliases[name]; ok {
		return field, nil
	}
	_, known := r.FieldIndex(name)
	if known || name == nameField || name == namespaceField && r.namespaceSelectable() || r.HasEmptyField(name) {
		return name, nil
	}
	switch {
	case r.FieldLabels.Unknown != nil:
		return "", errors.New(r.FieldLabels.Unknown(name))
	case r.ownFields():
		return "", fmt.Errorf("field label not supported: %s", name)
	}
	return "", fmt.Errorf("%q is not a known field selector: only %q, %q", name, nameField, namespaceField)
}

// HasEmptyField reports whether a field may be selected by, but is empty in every object.
func (r *Resource) HasEmptyField(name string) bool { return slices.Contains(r.FieldLabels.Empty, name) }

// ownFields reports whether the kind says itself what can be selected. Custom resources do, even
// if they have no fields.
func (r *Resource) ownFields() bool { return len(r.Fields) > 0 || r.Stored().Mixed }

// namespaceSelectable: Kubernetes lets every kind be selected by its namespace, cluster-scoped ones
// included, unless the kind says itself what can be selected.
func (r *Resource) namespaceSelectable() bool {
	return !r.ownFields() || r.Namespaced && !r.FieldLabels.NoNamespace
}

// target is what a value found at a place of the JSON is for.
type target struct {
	field int // index in Resource.Fields, or one of the constants
	rank  int // position among the field's paths; the lowest that is not empty wins
}

const (
	targetName = -1 - iota
	targetNamespace
	targetUID
	targetLabels
)

// fieldNode is one object of the JSON on the way to the targets.
type fieldNode struct {
	name     string
	children []*fieldNode
	targets  []target
}

// extraction is the compiled form of a resource's Fields.
type extraction struct {
	root   *fieldNode
	fields []Field
	ranked bool // some field has several paths
}

// extraction returns the compiled Fields. It is made on first use; racing
// first users make the same thing twice, which does no harm.
func (r *Resource) extraction() *extraction {
	if plan := r.plan.Load(); plan != nil {
		return plan
	}
	r.plan.CompareAndSwap(nil, r.compile(r.Fields))
	return r.plan.Load()
}

func (r *Resource) compile(fields []Field) *extraction {
	plan := &extraction{root: &fieldNode{}, fields: fields}
	plan.add([]string{"metadata", "name"}, target{field: targetName})
	if r.Namespaced {
		plan.add([]string{"metadata", "namespace"}, target{field: targetNamespace})
	}
	plan.add([]string{"metadata", "uid"}, target{field: targetUID})
	plan.add([]string{"metadata", "labels"}, target{field: targetLabels})
	for i, f := range fields {
		for rank, path := range f.Paths {
			plan.add(path, target{field: i, rank: rank})
			plan.ranked = plan.ranked || rank > 0
		}
	}
	return plan
}

// add enters one path.
func (e *extraction) add(path []string, t target) {
	node := e.root
	for _, name := range path {
		child := node.child([]byte(name))
		if child == nil {
			child = &fieldNode{name: name}
			node.children = append(node.children, child)
		}
		node = child
	}
	node.targets = append(node.targets, t)
}

func (n *fieldNode) child(name []byte) *fieldNode {
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// extractor is one run over one object.
type extractor struct {
	scan  jsonscan.Scanner
	plan  *extraction
	mixed bool // of custom resources, which other programs may have written
	out   Attributes
	ranks []int // rank+1 of the path that Fields[i] came from; nil if no field has several
}

// root walks the top level, and stops as soon as nothing that is left can
// matter.
func (x *extractor) root() error {
	if err := x.scan.Expect('{'); err != nil {
		return err
	}
	missing := len(x.plan.root.children)
	for first := true; missing > 0; first = false {
		key, ok, err := x.scan.Member(first)
		if err != nil || !ok {
			return err
		}
		child, err := x.plan.root.find(key)
		if err != nil {
			return err
		}
		if child != nil {
			missing--
		}
		if err := x.value(child); err != nil {
			return err
		}
	}
	return nil
}

// find returns the child that a key stands for, or nil.
func (n *fieldNode) find(key jsonscan.String) (*fieldNode, error) {
	if !key.Escaped {
		return n.child(key.Raw()), nil
	}
	name, err := key.Unescape(nil)
	if err != nil {
		return nil, err
	}
	return n.child(name), nil
}

// value consumes one value, of which node says what is wanted.
func (x *extractor) value(node *fieldNode) error {
	if node == nil {
		return x.skip()
	}
	c := x.scan.Peek()
	switch c {
	case '{':
		if len(node.targets) == 1 && node.targets[0].field == targetLabels {
			return x.labels()
		}
		if len(node.children) > 0 {
			return x.object(node)
		}
		return x.skip()
	case '[':
		return x.skip()
	case '"':
		quoted, err := x.scan.String()
		if err != nil || len(quoted.Raw()) == 0 || len(node.targets) == 0 {
			return err
		}
		value, err := quoted.Value()
		if err != nil {
			return err
		}
		x.found(node, value)
		return nil
	}
	literal, err := x.scan.Skip()
	if err == nil && c != 'n' { // null is as good as absent
		x.found(node, unsafe.String(unsafe.SliceData(literal), len(literal)))
	}
	return err
}

func (x *extractor) skip() error {
	_, err := x.scan.Skip()
	return err
}

// object consumes an object some of whose members are wanted.
func (x *extractor) object(node *fieldNode) error {
	if err := x.scan.Expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, ok, err := x.scan.Member(first)
		if err != nil || !ok {
			return err
		}
		child, err := node.find(key)
		if err != nil {
			return err
		}
		if err := x.value(child); err != nil {
			return err
		}
	}
}

// found records a value that is not empty.
func (x *extractor) found(node *fieldNode, value string) {
	for _, t := range node.targets {
		switch t.field {
		case targetName:
			x.out.Name = value
		case targetNamespace:
			x.out.Namespace = value
		case targetUID:
			x.out.UID = value
		case targetLabels: // not an object: no labels
		default:
			if x.ranks != nil {
				if had := x.ranks[t.field]; had != 0 && had < t.rank+1 {
					continue
				}
				x.ranks[t.field] = t.rank + 1
			}
			x.out.Fields[t.field] = value
		}
	}
}

// labels consumes the object metadata.labels. Other programs may have written a custom
// resource with labels that are no strings.
func (x *extractor) labels() error {
	if err := x.scan.Expect('{'); err != nil {
		return err
	}
	var found Labels
	malformed := false
	for first := true; ; first = false {
		key, ok, err := x.scan.Member(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		var l Label
		if l.Key, err = key.Value(); err != nil {
			return err
		}
		if x.mixed && x.scan.Peek() != '"' {
			if err := x.skip(); err != nil {
				return err
			}
			malformed = true
			continue
		}
		value, err := x.scan.String()
		if err != nil {
			return err
		}
		if l.Value, err = value.Value(); err != nil {
			return err
		}
		if found == nil {
			found = make(Labels, 0, linearLabels/2)
		}
		found = append(found, l)
	}
	if !malformed { // of an object with such labels none is shown
		x.out.Labels = slices.Clip(found.sorted())
	}
	return nil
}
