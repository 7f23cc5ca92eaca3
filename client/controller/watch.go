package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// Source is anything that has to be complete before the workers begin: an
// informer that is read but not watched, for instance.
type Source interface {
	// Synced is closed when it is.
	Synced() <-chan struct{}
}

// source is what Run starts and waits for.
type source struct {
	name string
	// start registers the handler, which Run removes; nil if there is none.
	start  func() (*informer.Registration, error)
	synced func() <-chan struct{} // if there is no handler
}

// MapFunc calls add with the key of each object that has to be looked at when obj
// has changed.
type MapFunc[T any] func(obj T, add func(Key))

// For enqueues the key of each object of the informer that is added, changed or
// deleted, if all predicates return true. For, Owns, Watch, Handle and
// RequireSync must be called before Run: one that is called later ends Run with
// an error.
func For[T client.Object](c *Controller, inf *informer.SharedInformer[T], when ...Predicate[T]) {
	watch(c, inf, mapping[T]{keys: func(obj T, add func(Key)) { add(KeyOf(obj)) }, when: when})
}

// Owns enqueues the key of the owner of each object of the informer: that of its
// controller owner reference, if it is of the kind. When the owner of an object
// changes, the keys of both owners are enqueued. The owner is assumed in the
// object's namespace; owners of a cluster-scoped kind need Watch with a MapFunc.
func Owns[T client.Object](c *Controller, inf *informer.SharedInformer[T], owner schema.GroupVersionKind, when ...Predicate[T]) {
	Watch(c, inf, func(obj T, add func(Key)) {
		if ref := metav1.GetControllerOfNoCopy(obj); ref != nil && IsOwner(ref, owner) {
			add(Key{Namespace: obj.GetNamespace(), Name: ref.Name})
		}
	}, when...)
}

// IsOwner reports whether a reference is to an object of the kind, in any API
// version of its group.
func IsOwner(ref *metav1.OwnerReference, kind schema.GroupVersionKind) bool {
	if ref.Kind != kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == kind.Group
}

// Watch enqueues the keys that keys returns for each object of the informer that
// is added or deleted, and for the old and the new state of one that is changed,
// if all predicates return true.
func Watch[T client.Object](c *Controller, inf *informer.SharedInformer[T], keys MapFunc[T], when ...Predicate[T]) {
	watch(c, inf, mapping[T]{keys: keys, both: true, when: when})
}

func watch[T client.Object](c *Controller, inf *informer.SharedInformer[T], m mapping[T]) {
	m.fresh, m.low = c.Add, func(key Key) { c.AddPriority(key, LowPriority) }
	Handle(c, inf, m)
}

// Handle has a handler called by the informer for as long as the controller
// runs. It is for handlers that do more than adding keys, which they do with
// Add.
func Handle[T client.Object](c *Controller, inf *informer.SharedInformer[T], handler informer.Handler[T]) {
	c.addSource(source{name: inf.Name(), start: func() (*informer.Registration, error) {
		return inf.AddHandler(handler, informer.HandlerOptions{Name: c.opts.Name})
	}})
}

// RequireSync makes Run wait for a source before the workers start. Errors call
// the source name.
func (c *Controller) RequireSync(name string, s Source) {
	c.addSource(source{name: name, synced: s.Synced})
}

func (c *Controller) addSource(s source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == running {
		c.end(s.failed(errLate))
		return
	}
	c.sources = append(c.sources, s)
}

// mapping is the handler that turns changes into keys.
type mapping[T client.Object] struct {
	fresh, low func(Key) // add a key after a change, or after a first list or resync
	keys       MapFunc[T]
	both       bool // the old state may have other keys than the new one
	when       []Predicate[T]
}

// OnAdd implements informer.Handler.
func (m mapping[T]) OnAdd(obj T, initial bool) {
	change := Change[T]{Kind: Added, Object: obj, Initial: initial}
	if m.wanted(change) {
		m.keys(obj, m.add(initial))
	}
}

// OnUpdate implements informer.Handler.
func (m mapping[T]) OnUpdate(old, obj T) {
	change := Change[T]{Kind: Updated, Old: old, Object: obj}
	if !m.wanted(change) {
		return
	}
	resync := change.Resync()
	if m.both && !resync {
		m.keys(old, m.fresh)
	}
	m.keys(obj, m.add(resync))
}

// OnDelete implements informer.Handler.
func (m mapping[T]) OnDelete(obj T, finalStateUnknown bool) {
	change := Change[T]{Kind: Deleted, Object: obj, FinalStateUnknown: finalStateUnknown}
	if m.wanted(change) {
		m.keys(obj, m.fresh)
	}
}

func (m mapping[T]) add(low bool) func(Key) {
	if low {
		return m.low
	}
	return m.fresh
}

func (m mapping[T]) wanted(change Change[T]) bool {
	for _, wanted := range m.when {
		if !wanted(change) {
			return false
		}
	}
	return true
}

func (s source) ready(r *informer.Registration) <-chan struct{} {
	if r != nil {
		return r.Synced()
	}
	return s.synced()
}

// failed is the error of a source.
func (s source) failed(err error) error { return fmt.Errorf("%s: %w", s.name, err) }
