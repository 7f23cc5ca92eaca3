package controller

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
)

// TypedMapFunc calls add with each key that has to be looked at when obj has
// changed. After a panic, of it or of a Predicate, it is called again with the same change, after 100 ms and then
// after longer and longer, up to 5 minutes.
type TypedMapFunc[T any, K comparable] func(obj T, add func(K))

// MapFunc is a TypedMapFunc to a namespace and a name.
type MapFunc[T any] = TypedMapFunc[T, Key]

// For enqueues the key of each object of the informer that is added, changed or
// deleted, if all predicates return true.
//
// For, Owns, Watch, Handle and RequireSync may be called before Run and while
// it runs. The workers begin when all sources that were added before they did
// are complete; those that come later deliver their keys as they list. The
// [Registration] removes a source.
func For[T client.Object](c *Controller, inf *informer.SharedInformer[T], when ...Predicate[T]) *Registration {
	return watch(c, inf, mapping[T, Key]{keys: EnqueueObject[T]}, when)
}

// Owns enqueues the key of the owner of each object of the informer: that of its
// controller owner reference, if it is of the kind of the Go type Owner, in any
// version of its group. When the owner of an object changes, the keys of both owners
// are enqueued. The kind, and whether the owner is in the object's namespace, is what
// the scheme of the informer's client says; if the type is not registered in it, Run
// fails. Owners without a Go type have Watch with [EnqueueOwner].
//
//	controller.Owns[*appsv1.ReplicaSet](c, pods)
func Owns[Owner, T client.Object](c *Controller, inf *informer.SharedInformer[T], when ...Predicate[T]) *Registration {
	if inf == nil {
		return c.register(invalidRegistration(noInformer, errNilInformer))
	}
	owner, err := scheme.For[Owner](inf.Scheme())
	if err != nil {
		return c.register(invalidRegistration(inf.Name(), err))
	}
	return Watch(c, inf, EnqueueOwner[T](owner), when...)
}

// noInformer and errNilInformer are the name and the error of a source without an
// informer. Run returns the error.
const noInformer = "a source of the controller"

var errNilInformer = errors.New("the informer is nil")

// Watch enqueues the keys that keys returns for each object of the informer that
// is added or deleted, and for the old and the new state of one that is changed,
// if all predicates return true.
func Watch[T client.Object, K comparable](c *TypedController[K], inf *informer.SharedInformer[T], keys TypedMapFunc[T, K], when ...Predicate[T]) *Registration {
	return watch(c, inf, mapping[T, K]{keys: keys, both: true}, when)
}

func watch[T client.Object, K comparable](c *TypedController[K], inf *informer.SharedInformer[T], m mapping[T, K], when []Predicate[T]) *Registration {
	switch {
	case inf == nil:
		return c.register(invalidRegistration(noInformer, errNilInformer))
	case m.keys == nil:
		return c.register(invalidRegistration(inf.Name(), errors.New("the MapFunc is nil")))
	case slices.ContainsFunc(when, func(p Predicate[T]) bool { return p == nil }):
		return c.register(invalidRegistration(inf.Name(), errors.New("a Predicate is nil")))
	}
	m.when = And(when...)
	m.fresh, m.low = c.Add, func(key K) { c.AddPriority(key, LowPriority) }
	m.tracer, m.info = c.opts.Tracer, HandlerInfo{Controller: c.opts.Name, Source: inf.Name()}
	m.retries = newRetries[T](c.opts.Logger.With("informer", inf.Name()))
	m.retries.again = m.enqueue
	r := newHandled(c, inf, m)
	r.stop = m.retries.stop
	return c.register(r)
}

// Handle has a handler called by the informer for as long as the controller
// runs. It is for handlers that do more than adding keys, which they do with
// Add.
func Handle[T client.Object, K comparable](c *TypedController[K], inf *informer.SharedInformer[T], handler informer.Handler[T]) *Registration {
	if inf == nil {
		return c.register(invalidRegistration(noInformer, errNilInformer))
	}
	return c.register(newHandled(c, inf, handler))
}

func newHandled[T client.Object, K comparable](c *TypedController[K], inf *informer.SharedInformer[T], handler informer.Handler[T]) *Registration {
	r := newRegistration(inf.Name(), func() (*informer.Registration, error) {
		return inf.AddHandler(handler, informer.HandlerOptions{Name: c.opts.Name})
	}, nil)
	r.informer = inf
	return r
}

// RequireSync makes Run wait for a source before the workers start. Errors call
// the source name. Once the workers run it only reports: its Registration is
// synced when the source is. An informer counts for [Consistent].
func (c *TypedController[K]) RequireSync(name string, s Source) *Registration {
	if s == nil {
		return c.register(invalidRegistration(name, errors.New("the Source is nil")))
	}
	r := newRegistration(name, nil, s)
	r.informer, _ = s.(versioned)
	return c.register(r)
}

// EnqueueObject is the MapFunc of For: the key is that of the object itself.
func EnqueueObject[T client.Object](obj T, add func(Key)) { add(KeyOf(obj)) }

// EnqueueOwner returns the MapFunc of Owns, for owners without a Go type too. Only
// Kind and Scope of the mapping count; an owner of an unknown scope is taken to be in
// the object's namespace.
func EnqueueOwner[T client.Object](owner scheme.Mapping) MapFunc[T] {
	return func(obj T, add func(Key)) {
		ref := metav1.GetControllerOfNoCopy(obj)
		if ref == nil || !IsOwner(ref, owner.Kind) {
			return
		}
		key := Key{Namespace: obj.GetNamespace(), Name: ref.Name}
		if owner.Scope == scheme.Cluster {
			key.Namespace = ""
		}
		add(key)
	}
}

// InCluster returns a TypedMapFunc for an informer of a cluster's client: the
// keys are those of keys, in that cluster. A controller of several clusters is
//
//	c, err := controller.NewTyped(reconcile, controller.TypedOptions[controller.ClusterKey]{Name: "greeter"})
//	for name, greetings := range greetingsOf { // an informer for each cluster
//		controller.Watch(c, greetings, controller.InCluster(name, controller.EnqueueObject[*Greeting]))
//	}
func InCluster[T any](cluster string, keys MapFunc[T]) TypedMapFunc[T, ClusterKey] {
	return func(obj T, add func(ClusterKey)) {
		keys(obj, func(key Key) { add(ClusterKey{Cluster: cluster, Namespace: key.Namespace, Name: key.Name}) })
	}
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
