package reflector

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/contain"
)

// ListerWatcher is where a Reflector gets its objects from. [Resource] adapts a
// client.Resource. Its methods may be called concurrently. A *client.ScopeError that one
// of them returns ends [Reflector.Run].
type ListerWatcher[T client.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error)
	// Watch returns an open stream. It ends when ctx does.
	Watch(ctx context.Context, opts metav1.ListOptions) (Stream[T], error)
}

// Stream is an open watch. *client.Watch is one. If its ListerWatcher asks the
// server for another timeout than the options of Watch have, it has a method
// Timeout() time.Duration that returns it; otherwise the Reflector would take an
// end in due time for an early one.
type Stream[T client.Object] interface {
	// Next waits for the next event. io.EOF is a clean end; an in-stream ERROR
	// is an *apierrors.StatusError; a *client.DecodeError is an event that could
	// not be understood. An object without a name is such an event, too.
	Next() (client.WatchEvent[T], error)
	// Close ends the stream. It may be called while Next waits.
	Close()
}

// Store is what a Reflector writes to; it is declared here and implemented by
// the consumer (a DeltaFIFO, an Indexer). Calls come from one goroutine, in
// order. An error ends [Reflector.Run]: a store that cannot take an object has
// lost it.
type Store[T client.Object] interface {
	Add(obj T) error
	Update(obj T) error
	// Delete is given the last state that the server sent.
	Delete(obj T) error
	// Replace makes list everything there is. The slice then belongs to the
	// store.
	Replace(list []T, resourceVersion string) error
}

// Getter is what a Store implements, too, if it can say which state of an object it
// holds. A Reflector asks for it when an event is older than what the store has
// reached, and applies the event if it says more of its object. If the store is no Getter,
// the Reflector lists after such a deletion, and drops such a change.
type Getter[T client.Object] interface {
	// Get returns the state of an object that all calls so far have led to, and
	// whether it exists in it. obj is any state of the object.
	Get(obj T) (held T, exists bool)
}

// ConditionalWriter is what a Getter implements, too, if others than the Reflector write to it: between
// Get and a write of the Reflector, an object may have got a later state, or may have gone.
type ConditionalWriter[T client.Object] interface {
	// WriteIf does what Add, Update or Delete does, by the type of the event, which is one of these, if may
	// returns true for what Get returns. Nothing else is written in between. may does not call the Store.
	WriteIf(ev client.WatchEvent[T], may func(held T, exists bool) bool) error
}

// Dropper is what a Store implements, too, if it can say which objects a list or difference
// lacks. A Reflector remembers some of them, as it does deletions, so that an event from before
// that does not bring them back.
type Dropper[T client.Object] interface {
	// OnDrop is called once, before all other methods. Each Replace, and Merge, then calls dropped
	// for each object that it drops, before it returns. dropped does not call the Store.
	OnDrop(dropped func(obj T))
}

// Resource makes an endpoint a ListerWatcher. tweak, unless nil, changes the
// options of each request before it is sent: selectors, for instance. If it panics, the
// request is not sent and has failed. After a 404 in a
// namespace the server's discovery is asked, and a cluster-scoped resource is an error
// that ends [Reflector.Run].
func Resource[T client.Object](r client.Resource[T], tweak func(*metav1.ListOptions)) ListerWatcher[T] {
	return endpoint[T]{resource: r, tweak: tweak}
}

type endpoint[T client.Object] struct {
	resource client.Resource[T]
	tweak    func(*metav1.ListOptions)
}

func (e endpoint[T]) List(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error) {
	if err := e.change(&opts); err != nil {
		return nil, err
	}
	list, err := e.resource.List(ctx, opts)
	if err != nil {
		return nil, e.checkScope(ctx, err)
	}
	return list, nil
}

// change has tweak change the options.
func (e endpoint[T]) change(opts *metav1.ListOptions) error {
	if e.tweak == nil {
		return nil
	}
	return contain.Call("the function that changes the options of requests", func() { e.tweak(opts) })
}

// checkScope returns a *client.ScopeError in place of a 404 that will not pass: the
// resource is cluster-scoped and was asked for in a namespace.
func (e endpoint[T]) checkScope(ctx context.Context, err error) error {
	var wrong *client.ScopeError
	if apierrors.IsNotFound(err) && errors.As(e.resource.CheckScope(ctx), &wrong) {
		return wrong
	}
	return err
}

// Served implements Discoverer.
func (e endpoint[T]) Served(ctx context.Context) (bool, error) { return e.resource.Served(ctx) }

func (e endpoint[T]) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[T], error) {
	asked := opts.TimeoutSeconds
	if err := e.change(&opts); err != nil {
		return nil, err
	}
	w, err := e.resource.Watch(ctx, opts)
	if err != nil {
		return nil, e.checkScope(ctx, err) // not w: a nil *client.Watch would be a Stream that is not nil
	}
	if own := opts.TimeoutSeconds; own != nil && (asked == nil || *own != *asked) {
		return timedStream[T]{stream: w, timeout: time.Duration(*own) * time.Second}, nil
	}
	return w, nil
}

// timedStream is a Stream that lasts for another time than the Reflector asked for.
type timedStream[T client.Object] struct {
	stream  Stream[T]
	timeout time.Duration
}

func (s timedStream[T]) Next() (client.WatchEvent[T], error) { return s.stream.Next() }
func (s timedStream[T]) Close()                              { s.stream.Close() }
func (s timedStream[T]) Timeout() time.Duration              { return s.timeout }
