// Package cached reads objects as package client does, from informers where these
// have them and from the server otherwise.
//
// A [Reader] knows the informers of a program. [For] and its like return
// endpoints with the Get and List of client.Resource, so that code can be given
// the one or the other:
//
//	reader := cached.NewReader(factory, cached.Options{})
//	err := cached.Add(reader, informer.For[*corev1.Pod](factory, informer.ListOptions{}))
//	factory.Start(ctx)
//	pod, err := cached.For[*corev1.Pod](reader).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
//
// Which kinds are cached is the program's choice: those that it adds, or all that
// it reads, from the first use on ([Reader.CacheOnFirstUse]).
//
// Reading order: reader.go, source.go, resource.go, list.go, index.go.
package cached

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// Options are the options of a Reader.
type Options struct {
	// Shared has all reads return shared objects, the cache's own, which must not be
	// changed, as informer.Lister does. Default: copies, as of Lister.Copies.
	Shared bool
	// Uncached are the resources that CacheOnFirstUse leaves alone: Secrets for
	// instance, so that not all of them are in memory.
	Uncached []schema.GroupResource
}

// Reader reads from the informers that were added to it, and from the server
// what they do not have. All methods, and the functions of this package, may be
// called concurrently.
type Reader struct {
	client  *client.Client
	factory *informer.Factory
	opts    Options

	mu      sync.Mutex
	sources map[sourceKey][]any           // of *source[T], T being that of the key
	start   func(informer.Informer) error // starts a new informer; nil: none are made
}

// sourceKey is what the informers of a Resource have in common: the same resource
// may be cached as typed objects and as metadata.
type sourceKey struct {
	typ reflect.Type
	gvr schema.GroupVersionResource
}

// NewReader returns a reader that caches nothing yet. What it does not cache, it
// reads with the factory's client.
func NewReader(factory *informer.Factory, opts Options) *Reader {
	opts.Uncached = slices.Clone(opts.Uncached)
	return &Reader{client: factory.Client(), factory: factory, opts: opts, sources: map[sourceKey][]any{}}
}

// Add has the reader serve from an informer what it has. An informer that is
// limited to namespaces serves these, and one with selectors serves lists that
// select at least as narrowly, and the objects that it has: "app=web" is narrower than
// "app", and a list has to name the informer's field requirements as they are. Other reads
// go to the server. The program starts the informer; reads wait until it has synced. When it has
// stopped, by Factory.Remove for instance, the server is asked in its place. If it has
// failed, reads return what its Err says.
//
// It is an error to add an informer that was not made by a Factory, or one with
// a Modifier: what it has is not known. So it is if the informer has stopped.
func Add[T client.Object](r *Reader, inf *informer.SharedInformer[T]) error {
	if inf == nil {
		return errors.New("cached.Add: the informer is nil")
	}
	if err := inf.Err(); err != nil {
		return err
	}
	s, err := newSource(inf)
	if err != nil {
		return err
	}
	if s.hasStopped() {
		return fmt.Errorf("informer %s: %w", inf.Name(), informer.ErrStopped)
	}
	key := sourceKey{reflect.TypeFor[T](), inf.GroupVersionResource()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(key, s, func(known any) bool { return known.(*source[T]).informer == inf })
	return nil
}

func (r *Reader) addLocked(key sourceKey, s any, same func(any) bool) {
	if !slices.ContainsFunc(r.sources[key], same) {
		r.sources[key] = append(r.sources[key], s)
	}
}

// CacheOnFirstUse has the reader make an informer of each kind that is read and
// has none, with the factory's options, and start it. It runs until ctx ends. The
// first read waits until the informer has synced; to make one after the factory's Shutdown is
// an error. Other informers of the factory are not started. Without CacheOnFirstUse,
// such kinds are read from the server each time.
//
// If the server refuses the informer's list, because the program's identity may not list
// the kind, or because it does not serve it, reads do not wait: they return what it has
// answered, which apierrors.IsForbidden or meta.IsNoMatchError tells. The informer goes on
// trying, at the latest every Options.Reflector.Backoff.Max, and reads return objects once it
// has a list. The identity needs the verbs list and watch, also where a program only calls Get.
//
// After ctx has ended, all kinds are read from the server.
func (r *Reader) CacheOnFirstUse(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = func(i informer.Informer) error { return r.factory.StartInformer(ctx, i) }
}

// For returns the endpoint of a Go type that reads from the caches. See
// client.For.
func For[T client.Object](r *Reader) Resource[T] {
	return newResource(r, client.For[T](r.client), func() *informer.SharedInformer[T] {
		return informer.For[T](r.factory, informer.ListOptions{})
	})
}

// Dynamic is [For] without a Go type. It shares no cache with [For].
func Dynamic(r *Reader, gvr schema.GroupVersionResource) Resource[*unstructured.Unstructured] {
	return newResource(r, client.Dynamic(r.client, gvr), func() *informer.SharedInformer[*unstructured.Unstructured] {
		return informer.Dynamic(r.factory, gvr, informer.ListOptions{})
	})
}

// Metadata is [For] of the metadata of objects. It shares no cache with [For].
func Metadata(r *Reader, gvr schema.GroupVersionResource) Resource[*metav1.PartialObjectMetadata] {
	return newResource(r, client.Metadata(r.client, gvr), func() *informer.SharedInformer[*metav1.PartialObjectMetadata] {
		return informer.Metadata(r.factory, gvr, informer.ListOptions{})
	})
}

// sourcesOf returns the informers for a resource.
func sourcesOf[T client.Object](r Resource[T]) []*source[T] {
	r.reader.mu.Lock()
	defer r.reader.mu.Unlock()
	return sourcesLocked(r)
}

// sourcesToRead returns the informers for a resource, making one if that is wanted.
func sourcesToRead[T client.Object](r Resource[T]) ([]*source[T], error) {
	r.reader.mu.Lock()
	defer r.reader.mu.Unlock()
	if all := sourcesLocked(r); len(all) > 0 || r.reader.start == nil || slices.Contains(r.reader.opts.Uncached, r.key().gvr.GroupResource()) {
		return all, nil
	}
	inf := r.makeInformer()
	if err := inf.Err(); err != nil {
		return nil, fmt.Errorf("caching on first use: %w", err)
	}
	s, err := newSource(inf)
	if err != nil {
		return nil, fmt.Errorf("caching on first use: %w", err)
	}
	if s.hasStopped() {
		return nil, nil // the factory keeps it until Factory.Remove, and does not start it again
	}
	if err := r.reader.start(inf); err != nil {
		return nil, fmt.Errorf("caching on first use: %w", err)
	}
	s.firstUse = true
	r.reader.sources[r.key()] = []any{s}
	return []*source[T]{s}, nil
}

// sourcesLocked needs the reader's mu.
func sourcesLocked[T client.Object](r Resource[T]) []*source[T] {
	known := slices.DeleteFunc(r.reader.sources[r.key()], func(s any) bool { return s.(*source[T]).hasStopped() })
	r.reader.sources[r.key()] = known
	all := make([]*source[T], len(known))
	for n, s := range known {
		all[n] = s.(*source[T])
	}
	return all
}

func (r Resource[T]) key() sourceKey {
	return sourceKey{reflect.TypeFor[T](), r.endpoint.GroupVersionResource()}
}
