package ondemand

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
)

// Options bound what a Reader keeps.
type Options struct {
	// MaxObjects is how many objects are kept; the one that was read longest ago
	// goes first. Default 128; negative: none.
	MaxObjects int
	// MaxAge is for how long an object is kept after it was fetched. Default 1 min.
	MaxAge time.Duration
}

// Reader reads whole objects. It is safe for concurrent use, and has no goroutine.
type Reader[T client.Object] struct {
	metadata *informer.SharedInformer[*metav1.PartialObjectMetadata]
	objects  client.Resource[T]
	opts     Options

	mu      sync.Mutex
	kept    map[types.NamespacedName]*list.Element // of *entry[T]
	recent  *list.List                             // the one that was read last first
	fetches map[types.NamespacedName]*fetch[T]     // that are under way
}

type entry[T client.Object] struct {
	key     types.NamespacedName
	obj     T
	fetched time.Time
}

// fetch is a request that several calls may wait for.
type fetch[T client.Object] struct {
	done chan struct{} // closed when obj and err are set
	obj  T
	err  error
}

// New returns a Reader of the objects that an informer of metadata watches. Both
// must be of the same resource.
func New[T client.Object](metadata *informer.SharedInformer[*metav1.PartialObjectMetadata], objects client.Resource[T], opts Options) (*Reader[T], error) {
	switch {
	case metadata == nil:
		return nil, errors.New("ondemand: there is no informer of metadata: make it with informer.Metadata")
	case !metadata.GroupVersionResource().Empty() && metadata.GroupVersionResource() != objects.GroupVersionResource():
		return nil, fmt.Errorf("ondemand: the informer is of %v, the objects are %v", metadata.GroupVersionResource(), objects.GroupVersionResource())
	case opts.MaxAge < 0:
		return nil, fmt.Errorf("ondemand: Options.MaxAge %v is negative: leave it 0 for the default", opts.MaxAge)
	case opts.MaxAge > 0 && opts.MaxAge < time.Millisecond:
		return nil, fmt.Errorf("ondemand: Options.MaxAge %v is below a millisecond: is it a number without a unit?", opts.MaxAge)
	}
	if opts.MaxObjects == 0 {
		opts.MaxObjects = 128
	}
	if opts.MaxAge == 0 {
		opts.MaxAge = time.Minute
	}
	return &Reader[T]{metadata: metadata, objects: objects, opts: opts,
		kept: map[types.NamespacedName]*list.Element{}, recent: list.New(), fetches: map[types.NamespacedName]*fetch[T]{}}, nil
}

// Get returns the object, not older than the informer's metadata of it. It asks the
// server unless it keeps that state; calls for one object at the same time make one
// request. An object that the informer, once synced, does not have is NotFound
// without a request, unless it may be one that the informer does not select: each Get
// of such an object asks the server, and it is not kept. When the informer has stopped, each
// Get asks the server. The namespace of a cluster-scoped object is ""; for objects in namespaces
// that is an error.
//
// Objects are shared among callers: they must not be changed.
func (r *Reader[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	var none T
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if r.isMisscoped(key) {
		return r.objects.Namespace(namespace).Get(ctx, name, metav1.GetOptions{}) // refuses it
	}
	for {
		synced := r.metadata.HasSynced() // before the look: the list may come in between
		known, ok := r.metadata.Lister().Get(namespace, name)
		if r.hasStopped() {
			return r.objects.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		}
		if !ok && synced {
			r.drop(key)
			if !r.selects(namespace) {
				return r.objects.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			}
			return none, r.notFound(key)
		}
		version := ""
		if ok {
			version = known.ResourceVersion
		}
		obj, f, mine := r.look(key, version)
		if f == nil {
			return obj, nil
		}
		if mine {
			r.run(ctx, key, f)
			return f.obj, f.err
		}
		select {
		case <-f.done:
			if f.err == nil && covers(f.obj.GetResourceVersion(), version) {
				return f.obj, nil
			}
			if f.err != nil && !isContext(f.err) {
				return none, f.err
			}
			// The request was older than what the informer has by now, or ended with
			// the context of its caller.
		case <-ctx.Done():
			return none, fmt.Errorf("get %s: %w", key, context.Cause(ctx))
		}
	}
}

// hasStopped reports whether the informer has stopped: it does not learn of changes any more.
func (r *Reader[T]) hasStopped() bool {
	select {
	case <-r.metadata.Done():
		return true
	default:
		return false
	}
}

// isMisscoped reports whether the endpoint cannot be used, or the key lacks a
// namespace or has one too many. The informer has no such object; the endpoint says
// what is wrong, before it sends a request.
func (r *Reader[T]) isMisscoped(key types.NamespacedName) bool {
	mapping, _ := r.objects.Mapping()
	return r.objects.Err() != nil || key.Name == "" ||
		mapping.Scope == scheme.Namespaced && key.Namespace == "" || mapping.Scope == scheme.Cluster && key.Namespace != ""
}

// selects reports whether the informer has every object of a namespace. It does not
// if it has a selector, or if what it selects is not known.
func (r *Reader[T]) selects(namespace string) bool {
	opts := r.metadata.ListOptions()
	switch {
	case r.metadata.GroupVersionResource().Empty() || opts.LabelSelector != "" || opts.FieldSelector != "" || opts.Modifier.Modify != nil:
		return false
	case len(opts.Namespaces) > 0:
		return slices.Contains(opts.Namespaces, namespace)
	default:
		return opts.Namespace == "" || opts.Namespace == namespace
	}
}

// notFound is the error for an object that the informer does not have. If the scheme does
// not know the scope, its objects may show that this one was looked for in the wrong place.
func (r *Reader[T]) notFound(key types.NamespacedName) error {
	resource := r.objects.GroupVersionResource().GroupResource()
	err := apierrors.NewNotFound(resource, key.Name)
	mapping, _ := r.objects.Mapping()
	if mapping.Scope != "" {
		return err
	}
	if scope := r.metadata.Lister().Scope(); scope != "" && (scope == scheme.Cluster) != (key.Namespace == "") {
		return fmt.Errorf("get %s: %w", resource.Resource, &client.ScopeError{Resource: r.objects.GroupVersionResource(), Scope: scope, Namespace: key.Namespace})
	}
	if key.Namespace == "" {
		return fmt.Errorf("%w (no namespace was given: if %s are namespaced, give one)", err, resource.Resource)
	}
	return err
}

// look returns an object that is kept in a version, or the request for it. mine: the
// caller has to make that request.
func (r *Reader[T]) look(key types.NamespacedName, version string) (obj T, f *fetch[T], mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, ok := r.kept[key]; ok {
		e := element.Value.(*entry[T])
		if time.Since(e.fetched) < r.opts.MaxAge && covers(e.obj.GetResourceVersion(), version) {
			r.recent.MoveToFront(element)
			return e.obj, nil, false
		}
		r.remove(element)
	}
	if f, ok := r.fetches[key]; ok {
		return obj, f, false
	}
	f = &fetch[T]{done: make(chan struct{})}
	r.fetches[key] = f
	return obj, f, true
}

// run makes the request and keeps its result.
func (r *Reader[T]) run(ctx context.Context, key types.NamespacedName, f *fetch[T]) {
	f.err = errors.New("the request was given up") // if Get panics
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.fetches, key)
		if f.err == nil {
			r.keep(key, f.obj)
		}
		close(f.done)
	}()
	f.obj, f.err = r.objects.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// keep needs mu.
func (r *Reader[T]) keep(key types.NamespacedName, obj T) {
	if r.opts.MaxObjects < 0 {
		return
	}
	r.kept[key] = r.recent.PushFront(&entry[T]{key: key, obj: obj, fetched: time.Now()})
	for oldest := r.recent.Back(); oldest != nil; oldest = r.recent.Back() {
		if r.recent.Len() <= r.opts.MaxObjects && time.Since(oldest.Value.(*entry[T]).fetched) < r.opts.MaxAge {
			return
		}
		r.remove(oldest)
	}
}

// remove needs mu.
func (r *Reader[T]) remove(element *list.Element) {
	r.recent.Remove(element)
	delete(r.kept, element.Value.(*entry[T]).key)
}

func (r *Reader[T]) drop(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, ok := r.kept[key]; ok {
		r.remove(element)
	}
}

// Len is how many objects are kept.
func (r *Reader[T]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recent.Len()
}

// covers reports whether an object of one resourceVersion is not older than the
// informer's metadata. Versions that are no numbers must be equal.
func covers(version, known string) bool {
	order, err := resourceversion.CompareResourceVersion(version, known)
	return known == "" || version == known || err == nil && order > 0
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
