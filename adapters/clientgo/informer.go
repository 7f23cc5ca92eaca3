package clientgo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgocache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// ErrNotSupported is returned by what an informer of Levelwire cannot do, or
// does in another way. The error that wraps it says which.
var ErrNotSupported = errors.New("not supported by an informer of Levelwire")

// SharedIndexInformer adapts an informer to client-go's interface. Any number
// of adapters may be made of one informer; they share everything. The informer
// runs once for all of them: its Factory starts it, or Run of one adapter.
func SharedIndexInformer[T client.Object](i *informer.SharedInformer[T]) clientgocache.SharedIndexInformer {
	return shared[T]{i}
}

// Informer is an informer with its lister: an informers.GenericInformer.
type Informer[T client.Object] struct {
	informer *informer.SharedInformer[T]
	resource schema.GroupResource
}

// GenericInformer makes an informer a client-go informers.GenericInformer.
// resource is named in the errors of its lister.
func GenericInformer[T client.Object](i *informer.SharedInformer[T], resource schema.GroupResource) Informer[T] {
	return Informer[T]{i, resource}
}

// Informer returns the informer.
func (g Informer[T]) Informer() clientgocache.SharedIndexInformer {
	return SharedIndexInformer(g.informer)
}

// Lister returns the lister.
func (g Informer[T]) Lister() clientgocache.GenericLister {
	return clientgocache.NewGenericLister(Indexer(g.informer), g.resource)
}

// shared is a SharedIndexInformer and, as far as that goes, its Controller.
type shared[T client.Object] struct {
	informer *informer.SharedInformer[T]
}

// Run runs the informer until stop is closed. If its Factory has started it, it
// says so and returns, as client-go's does when it is run twice.
func (s shared[T]) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ended:
		}
	}()
	s.RunWithContext(ctx)
}

// RunWithContext is Run that ends with ctx.
func (s shared[T]) RunWithContext(ctx context.Context) {
	if err := s.informer.Run(ctx); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "informer not run", "informer", s.informer.Name())
	}
}

func (s shared[T]) HasSynced() bool { return s.informer.HasSynced() }

func (s shared[T]) HasSyncedChecker() clientgocache.DoneChecker {
	return checker{"informer " + s.informer.Name(), s.informer.Synced()}
}

func (s shared[T]) LastSyncResourceVersion() string { return s.informer.LastSyncResourceVersion() }

func (s shared[T]) IsStopped() bool {
	select {
	case <-s.informer.Done():
		return true
	default:
		return false
	}
}

func (s shared[T]) GetStore() clientgocache.Store           { return Indexer(s.informer) }
func (s shared[T]) GetIndexer() clientgocache.Indexer       { return Indexer(s.informer) }
func (s shared[T]) GetController() clientgocache.Controller { return s }

func (s shared[T]) AddIndexers(indexers clientgocache.Indexers) error {
	return Indexer(s.informer).AddIndexers(indexers)
}

// SetTransform must be called before the informer is run.
func (s shared[T]) SetTransform(transform clientgocache.TransformFunc) error {
	if transform == nil {
		return s.informer.SetTransform(nil)
	}
	return s.informer.SetTransform(func(obj T) (T, error) {
		changed, err := transform(obj)
		if err != nil {
			return obj, err
		}
		typed, ok := changed.(T)
		if !ok {
			return obj, fmt.Errorf("the transform returned a %T, not a %T", changed, obj)
		}
		return typed, nil
	})
}

// SetWatchErrorHandler cannot be: client-go's handler is given client-go's
// Reflector, and there is none.
func (s shared[T]) SetWatchErrorHandler(clientgocache.WatchErrorHandler) error {
	return fmt.Errorf("%w: SetWatchErrorHandler; set Reflector.OnError in the Options of the informer's Factory", ErrNotSupported)
}

// SetWatchErrorHandlerWithContext cannot be: see SetWatchErrorHandler.
func (s shared[T]) SetWatchErrorHandlerWithContext(clientgocache.WatchErrorHandlerWithContext) error {
	return fmt.Errorf("%w: SetWatchErrorHandlerWithContext; set Reflector.OnError in the Options of the informer's Factory", ErrNotSupported)
}

func (s shared[T]) AddEventHandler(handler clientgocache.ResourceEventHandler) (clientgocache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, clientgocache.HandlerOptions{})
}

func (s shared[T]) AddEventHandlerWithResyncPeriod(handler clientgocache.ResourceEventHandler, resync time.Duration) (clientgocache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, clientgocache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds a handler. What it logs goes to the
// informer's own logger, not to options.Logger.
func (s shared[T]) AddEventHandlerWithOptions(handler clientgocache.ResourceEventHandler, options clientgocache.HandlerOptions) (clientgocache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, fmt.Errorf("informer %s: the handler is nil", s.informer.Name())
	}
	var opts informer.HandlerOptions
	if options.ResyncPeriod != nil {
		if opts.Resync = *options.ResyncPeriod; opts.Resync == 0 {
			opts.Resync = -1 // never, where ours would be the factory's
		}
	}
	registered, err := s.informer.AddHandler(adapted[T]{handler}, opts)
	if err != nil {
		return nil, err
	}
	return &registration{Registration: registered, of: s.informer, name: s.informer.Name()}, nil
}

// RemoveEventHandler does not wait for a call that is running. Removing twice
// is harmless.
func (s shared[T]) RemoveEventHandler(handle clientgocache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.of != any(s.informer) {
		return fmt.Errorf("informer %s: the registration is of another informer", s.informer.Name())
	}
	r.Remove()
	return nil
}
