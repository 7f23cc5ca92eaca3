package reflector

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// collection is the set of objects that a streaming list, or one of several pages,
// builds up. A server sends each object once and in the order of keys, so as long as it
// does, the set is a slice; the first object out of order makes an index of it.
type collection[T client.Object] struct {
	items   []T
	removed []bool // parallel to items; nil: nothing was removed
	index   map[objectKey]int
}

type objectKey struct{ namespace, name string }

func keyOf[T client.Object](obj T) objectKey {
	return objectKey{namespace: obj.GetNamespace(), name: obj.GetName()}
}

// identity is what says which object a state is of, and which of its states.
type identity struct {
	objectKey
	uid     types.UID
	version string
}

func identityOf[T client.Object](obj T) identity {
	return identity{keyOf(obj), obj.GetUID(), obj.GetResourceVersion()}
}

// put adds an object, or replaces it. It reports whether the object was there.
func (c *collection[T]) put(obj T) (replaced bool) {
	key := keyOf(obj)
	if c.index == nil {
		if len(c.items) == 0 || keyOf(c.items[len(c.items)-1]).before(key) {
			c.items = append(c.items, obj)
			return false
		}
		c.makeIndex()
	}
	if i, ok := c.index[key]; ok {
		replaced = !c.removed[i]
		c.items[i], c.removed[i] = obj, false
		return replaced
	}
	c.index[key] = len(c.items)
	c.items = append(c.items, obj)
	c.removed = append(c.removed, false)
	return false
}

// remove takes an object out, if it is there.
func (c *collection[T]) remove(obj T) {
	if c.index == nil {
		c.makeIndex()
	}
	if i, ok := c.index[keyOf(obj)]; ok {
		c.removed[i] = true
	}
}

// list returns the objects; the collection must not be used after it.
func (c *collection[T]) list() []T {
	if c.index == nil {
		return c.items
	}
	kept := c.items[:0]
	for i, obj := range c.items {
		if !c.removed[i] {
			kept = append(kept, obj)
		}
	}
	clear(c.items[len(kept):])
	return kept
}

func (c *collection[T]) makeIndex() {
	c.index = make(map[objectKey]int, len(c.items))
	for i, obj := range c.items {
		c.index[keyOf(obj)] = i
	}
	c.removed = make([]bool, len(c.items), cap(c.items))
}

// before is the order of keys in the store: that of "namespace/name" as a
// string, in which "a-b/x" comes before "a/x".
func (k objectKey) before(other objectKey) bool {
	if k.namespace == other.namespace {
		return k.name < other.name
	}
	n := min(len(k.namespace), len(other.namespace))
	if order := strings.Compare(k.namespace[:n], other.namespace[:n]); order != 0 {
		return order < 0
	}
	if len(k.namespace) < len(other.namespace) {
		return '/' < other.namespace[n]
	}
	return k.namespace[n] < '/'
}
