package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// Options configures a Factory.
type Options struct {
	// Namespace limits all informers that do not say otherwise. Default: all.
	Namespace string
	// Resync is HandlerOptions.Resync for handlers that do not say. Default, or
	// negative: never.
	Resync time.Duration
	// Reflector is how the informers list and watch; Name and Logger are set
	// for each.
	Reflector reflector.Options
	// Logger receives what happens. Default: discard.
	Logger *slog.Logger
	// Disk keeps the objects of all informers in files. Its zero value does
	// not.
	Disk DiskOptions
	// ConsistencyCheckInterval is how often each informer compares names and versions
	// with the server, and corrects what differs. Default: never.
	ConsistencyCheckInterval time.Duration
}

// Factory holds one informer per resource and ListOptions. All methods may be
// called concurrently.
type Factory struct {
	client *client.Client
	opts   Options

	mu        sync.Mutex
	informers map[informerKey]runnable
	order     []runnable
	started   map[runnable]bool
	stop      []context.CancelFunc
	closed    bool
	running   sync.WaitGroup
}

// Informer is a SharedInformer of any type, for code that handles informers of
// several types.
type Informer interface {
	// Name is one of its own among the informers of a Factory.
	Name() string
	Stats() Stats
	EstimateBytes() int64
	Freshness() Freshness
	Healthy(limit time.Duration) error
	Err() error
	Synced() <-chan struct{}
	Done() <-chan struct{}
}

// runnable is what a Factory does with an informer of any type.
type runnable interface {
	Informer
	Run(ctx context.Context) error
}

type informerKey struct {
	typ  reflect.Type
	gvr  schema.GroupVersionResource
	opts string
}

// NewFactory returns a factory without informers.
func NewFactory(c *client.Client, opts Options) *Factory {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Reflector.Logger = opts.Logger
	if opts.Disk.Identify == nil {
		opts.Disk.Identify = clusterOf(c)
	}
	return &Factory{client: c, opts: opts, informers: map[informerKey]runnable{}, started: map[runnable]bool{}}
}

// For returns the factory's informer of a built-in type, making it if it is
// the first call with these options. It has to be started by
// [Factory.Start], which may be called again for informers that came later.
func For[T client.Object](f *Factory, opts ListOptions) *SharedInformer[T] {
	return of(f, client.For[T](f.client), opts)
}

// ForResource is For with a Go type for custom resources; newT must return a
// new, empty object at each call.
func ForResource[T client.Object](f *Factory, gvr schema.GroupVersionResource, newT func() T, opts ListOptions) *SharedInformer[T] {
	return of(f, client.ForResource(f.client, gvr, newT), opts)
}

// Dynamic is For without a Go type.
func Dynamic(f *Factory, gvr schema.GroupVersionResource, opts ListOptions) *SharedInformer[*unstructured.Unstructured] {
	return of(f, client.Dynamic(f.client, gvr), opts)
}

// Metadata is For of which the server sends the metadata only.
func Metadata(f *Factory, gvr schema.GroupVersionResource, opts ListOptions) *SharedInformer[*metav1.PartialObjectMetadata] {
	return of(f, client.Metadata(f.client, gvr), opts)
}

func of[T client.Object](f *Factory, endpoint client.Resource[T], opts ListOptions) *SharedInformer[T] {
	opts = opts.in(f.opts)
	key := informerKey{reflect.TypeFor[T](), endpoint.GroupVersionResource(), opts.key()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.informers[key]; ok {
		return known.(*SharedInformer[T])
	}
	i := assemble(f, endpoint, opts)
	f.informers[key] = i
	f.order = append(f.order, i)
	return i
}

// assemble makes an informer. What is wrong with the options is what its Err
// says.
func assemble[T client.Object](f *Factory, endpoint client.Resource[T], opts ListOptions) *SharedInformer[T] {
	gvr := endpoint.GroupVersionResource()
	var origins []origin[T]
	for _, namespace := range opts.namespaces() {
		endpoint := endpoint.Namespace(namespace)
		from := origin[T]{
			source:         reflector.Resource(endpoint.Sharing(), opts.apply),
			unsharedSource: reflector.Resource(endpoint, opts.apply),
		}
		if len(opts.Namespaces) > 0 {
			from.namespace = namespace
		}
		origins = append(origins, from)
	}
	i := newInformer(f.nameFor(gvr, reflect.TypeFor[T](), opts), origins, f.opts.Reflector, f.opts.Resync)
	i.invalidBecause(opts.validate())
	if f.opts.Disk.Directory != "" {
		i.invalidBecause(i.keepOnDisk(f.opts.Disk, gvr.Group+"/"+gvr.Version+"/"+gvr.Resource, opts.describe()))
	}
	if f.opts.ConsistencyCheckInterval != 0 {
		i.invalidBecause(i.checkWith(checkWith(f.opts.ConsistencyCheckInterval, f.client, endpoint, opts)))
	}
	return i
}

// checkWith compares by what the endpoint's metadata says: the lists of
// several namespaces one after another, as if they were pages of one.
func checkWith[T client.Object](interval time.Duration, c *client.Client, endpoint client.Resource[T], selected ListOptions) ConsistencyCheckOptions[T] {
	metadata := client.Metadata(c, endpoint.GroupVersionResource())
	namespaces := selected.namespaces()
	return ConsistencyCheckOptions[T]{
		Interval: interval,
		List: func(ctx context.Context, opts metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
			selected.apply(&opts)
			n, token := splitToken(opts.Continue)
			opts.Continue = token
			page, err := metadata.Namespace(namespaces[min(n, len(namespaces)-1)]).List(ctx, opts)
			switch {
			case err != nil:
				return nil, err
			case page.Continue != "":
				page.Continue = joinToken(n, page.Continue)
			case n+1 < len(namespaces):
				page.Continue = joinToken(n+1, "")
			}
			return page, nil
		},
		Get: func(ctx context.Context, namespace, name string) (T, error) {
			return endpoint.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}
}

// nameFor is how an informer is called in logs and metrics: "pods",
// "deployments.apps (namespace x, labels app=y)". It needs f.mu.
func (f *Factory) nameFor(gvr schema.GroupVersionResource, typ reflect.Type, opts ListOptions) string {
	limits := opts.describe()
	name := func(limits string) string {
		if limits == "" {
			return gvr.GroupResource().String()
		}
		return gvr.GroupResource().String() + " (" + limits + ")"
	}
	switch typ {
	case reflect.TypeFor[*metav1.PartialObjectMetadata]():
		limits = strings.TrimPrefix(limits+", metadata", ", ")
	case reflect.TypeFor[*unstructured.Unstructured]():
		limits = strings.TrimPrefix(limits+", dynamic", ", ")
	}
	plain := name(limits)
	if !slices.ContainsFunc(f.order, func(other runnable) bool { return other.Name() == plain }) {
		return plain
	}
	return name(strings.TrimPrefix(fmt.Sprintf("%s, %s as %v", limits, gvr.Version, typ), ", "))
}

// Informers returns all informers, in the order in which they were made.
func (f *Factory) Informers() []Informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Informer, len(f.order))
	for n, i := range f.order {
		all[n] = i
	}
	return all
}

// Start runs the informers that have not been started, each until ctx ends or
// Shutdown is called. It does not wait. After Shutdown it does nothing.
func (f *Factory) Start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	begun := false
	for _, i := range f.order {
		if f.started[i] {
			continue
		}
		f.started[i], begun = true, true
		f.running.Go(func() {
			if err := i.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				f.opts.Logger.Error("informer ended", "informer", i.Name(), "error", err)
			}
		})
	}
	if !begun {
		cancel()
		return
	}
	f.stop = append(f.stop, cancel)
}

// WaitForSync waits, without polling, until every informer that has been
// started holds a complete list. If ctx ends before, or an informer stops
// without, the error names those that do not, and why.
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	var waiting []Informer
	for _, i := range f.order {
		if f.started[i] {
			waiting = append(waiting, i)
		}
	}
	f.mu.Unlock()
	for n, i := range waiting {
		select {
		case <-i.Synced():
		case <-i.Done():
			if len(unsynced(waiting[n:n+1])) > 0 {
				return stoppedEarly(i)
			}
		case <-ctx.Done():
			return fmt.Errorf("no complete list yet of %s: %w", strings.Join(unsynced(waiting[n:]), ", "), context.Cause(ctx))
		}
	}
	return nil
}

func stoppedEarly(i Informer) error {
	if err := i.Err(); err != nil {
		return fmt.Errorf("%w before there was a complete list: %w", ErrStopped, err)
	}
	return fmt.Errorf("informer %s stopped before it had a complete list: %w", i.Name(), ErrStopped)
}

// unsynced names those that have no complete list yet, with the last error.
func unsynced(informers []Informer) (names []string) {
	for _, i := range informers {
		select {
		case <-i.Synced():
		default:
			name := i.Name()
			if err := i.Stats().Reflector.LastError; err != nil {
				name += fmt.Sprintf(" (last error: %v)", err)
			}
			names = append(names, name)
		}
	}
	return names
}

// Shutdown stops all informers and waits for them and for the handler calls
// that are running. It must not be called by a handler.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.closed = true
	for _, stop := range f.stop {
		stop()
	}
	f.stop = nil
	f.mu.Unlock()
	f.running.Wait()
}
