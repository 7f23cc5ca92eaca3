package resource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Label is one label of an object.
type Label struct {
	Key, Value string
}

// Labels are an object's labels, sorted by key: a third of the memory of a
// map, and as quick to search at the sizes that occur. It implements
// labels.Labels, so that any selector matches it directly. A Labels is
// immutable and safe for concurrent use.
type Labels []Label

var _ labels.Labels = Labels(nil)

// linearLabels is the size up to which looking at every label is quicker than
// bisecting.
const linearLabels = 8

// Lookup returns the value of the label and whether there is one.
func (l Labels) Lookup(key string) (string, bool) {
	if len(l) <= linearLabels {
		for i := range l {
			if l[i].Key == key {
				return l[i].Value, true
			}
		}
		return "", false
	}
	i, found := slices.BinarySearchFunc(l, key, func(l Label, key string) int { return strings.Compare(l.Key, key) })
	if !found {
		return "", false
	}
	return l[i].Value, true
}

// Has reports whether there is such a label.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the value of the label, "" if there is none.
func (l Labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// sorted puts the labels in order. Encoders sort object keys, so there is
// normally nothing to do. Of equal keys the last one counts, as in every JSON decoder.
func (l Labels) sorted() Labels {
	ordered := true
	for i := 1; i < len(l); i++ {
		if l[i-1].Key >= l[i].Key {
			ordered = false
			break
		}
	}
	if ordered {
		return l
	}
	slices.SortStableFunc(l, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	kept := l[:0]
	for i := range l {
		if i+1 == len(l) || l[i+1].Key != l[i].Key {
			kept = append(kept, l[i])
		}
	}
	return kept
}
