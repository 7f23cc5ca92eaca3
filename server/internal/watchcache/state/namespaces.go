package state

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Namespaces is a set of namespaces, or all of them. It is immutable. The nil set is
// empty.
type Namespaces struct {
	all   bool
	names []string // in the order of their objects' keys, each once
}

var allNamespaces = &Namespaces{all: true}

// AllNamespaces returns the set of all namespaces, those to come included.
func AllNamespaces() *Namespaces { return allNamespaces }

// NewNamespaces returns the set of the given namespaces. It keeps the slice, and changes
// its order.
func NewNamespaces(names []string) *Namespaces {
	slices.SortFunc(names, compareAsKeys)
	return &Namespaces{names: slices.Compact(names)}
}

// compareAsKeys orders namespaces as the keys of their objects: "a-b/x" comes before
// "a/x".
func compareAsKeys(a, b string) int {
	n := min(len(a), len(b))
	if c := strings.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	switch {
	case len(a) < len(b):
		return cmp.Compare('/', b[n])
	case len(a) > len(b):
		return cmp.Compare(a[n], '/')
	}
	return 0
}

// All reports whether every namespace is in the set.
func (n *Namespaces) All() bool { return n != nil && n.all }

// Has reports whether a namespace is in the set.
func (n *Namespaces) Has(namespace string) bool {
	if n == nil || n.all {
		return n != nil
	}
	_, found := slices.BinarySearchFunc(n.names, namespace, compareAsKeys)
	return found
}

// Names returns the namespaces, unless the set is of all. The slice must not be modified.
func (n *Namespaces) Names() []string {
	if n == nil {
		return nil
	}
	return n.names
}

// From yields the namespaces that can have keys that are not smaller than the given one, in
// the order of keys. The set must not be of all.
func (n *Namespaces) From(key string) iter.Seq[string] {
	namespace, _, _ := strings.Cut(key, "/")
	i, _ := slices.BinarySearchFunc(n.names, namespace, compareAsKeys)
	return slices.Values(n.names[i:])
}

// Equal reports whether two sets are the same.
func (n *Namespaces) Equal(other *Namespaces) bool {
	return n.All() == other.All() && slices.Equal(n.Names(), other.Names())
}

// Contains reports whether every namespace of another set is in this one.
func (n *Namespaces) Contains(other *Namespaces) bool {
	if n.All() || other.All() {
		return n.All()
	}
	for _, name := range other.Names() {
		if !n.Has(name) {
			return false
		}
	}
	return true
}

// Without returns the namespaces of the set that are not in another one. It is the set itself
// if that is of all: its complement cannot be named.
func (n *Namespaces) Without(other *Namespaces) *Namespaces {
	if n.All() {
		return n
	}
	return &Namespaces{names: slices.DeleteFunc(slices.Clone(n.Names()), other.Has)}
}
