package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	"github.com/levelwire/levelwire/client/scheme"
)

// Options configures a Factory.
type Options struct {
	// Namespace limits all informers that do not say otherwise. It does not apply to
	// cluster-scoped resources: if the scheme does not know the scope of one, the informer
	// asks the server's discovery after a 404. An informer whose type is registered with
	// the wrong scope ends with a *client.ScopeError. Default: all namespaces.
	Namespace string
	// Resync is HandlerOptions.Resync for handlers that do not say. Default, or
	// negative: never.
	Resync time.Duration
	// Reflector is how the informers list and watch. Its Name, Logger, ResumeFrom
	// and OnProgress cannot be set; OnError and Rand are called from a goroutine
	// for each informer.
	Reflector reflector.Options
	// Logger receives what happens. Default: slog.Default().
	Logger *slog.Logger
	// Disk keeps the objects of all informers in files. Its zero value does
	// not.
	Disk DiskOptions
	// ConsistencyCheckInterval is how often each informer compares names and versions
	// with the server, and corrects what differs. Default: never.
	ConsistencyCheckInterval time.Duration
	// Transform changes each object of all informers before it is stored and
	// handlers see it. Objects then are not interned, see NoInterning, and take about
	// twice the memory: except with StripManagedFields, which writes to nothing that is
	// interned. SharedInformer.SetTransform replaces it. Default: none.
	Transform func(client.Object) error
	// CompressObjects keeps all objects encoded and compressed, and decodes them
	// for each read: see SharedInformer.CompressObjects. Default: they are kept
	// decoded.
	CompressObjects bool
	// NoInterning decodes each object into memory of its own: code that writes to
	// one changes no other, and the next event of that object brings it back to
	// what the server has. Objects then take about twice the memory, and more
	// time to decode. Default: equal parts of different objects are kept once,
	// see client.Resource.Interning.
	NoInterning bool
	// MutationDetection looks for code that writes to cached objects. Its zero
	// value does not.
	MutationDetection MutationDetection
}

// Factory holds one informer per resource and ListOptions. All methods may be
// called concurrently.
type Factory struct {
	client  *client.Client
	opts    Options
	invalid error // why no informer can run

	mu        sync.Mutex
	informers map[informerKey]runnable
	order     []runnable
	started   map[runnable]context.CancelFunc // what ends those that were started
	removing  map[runnable]chan struct{}      // those that Remove waits for; closed when they are forgotten
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
	hasStarted() bool
}

type informerKey struct {
	typ  reflect.Type
	gvr  schema.GroupVersionResource
	opts string
}

// NewFactory returns a factory without informers. If the options cannot be used
// (see Options.Validate), the Err of each informer says so, and so do AddHandler
// and WaitForSync.
func NewFactory(c *client.Client, opts Options) *Factory {
	err := opts.Validate()
	if c == nil {
		err = errors.New("NewFactory: the client is nil: was the error of the call that makes it ignored?")
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	opts.Reflector.Logger = opts.Logger
	if opts.Disk.Directory != "" && opts.Disk.Identify == nil {
		opts.Disk.Identify = clusterOf(c)
	}
	return &Factory{client: c, opts: opts, invalid: err, informers: map[informerKey]runnable{}, started: map[runnable]context.CancelFunc{}, removing: map[runnable]chan struct{}{}}
}

// For returns the factory's informer of a Go type, making it if it is the first call
// with these options. It has to be started by [Factory.Start], which may be called
// again for informers that came later. The types of Kubernetes are known; others are
// registered once, see [scheme.Register]. The informer of a type that is not says so
// in Err, AddHandler and WaitForSync.
//
// A factory keeps its informers. One that has stopped, with the context of
// [Factory.StartInformer] for instance, is not started again, and For returns it for
// the same options: a program that needs it anew calls [Factory.Remove] first.
func For[T client.Object](f *Factory, opts ListOptions) *SharedInformer[T] {
	return of(f, client.For[T](f.client), opts)
}

// ForResource is For with a Go type that serves several resources, and so cannot be
// registered; newT must return a new, empty object at each call.
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
	mapping, _ := endpoint.Mapping()
	opts = opts.in(f.opts, mapping.Scope)
	key := informerKey{reflect.TypeFor[T](), endpoint.GroupVersionResource(), opts.key()}
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		known, ok := f.informers[key]
		if !ok {
			break
		}
		removed := f.removing[known]
		if removed == nil {
			return known.(*SharedInformer[T])
		}
		f.mu.Unlock()
		<-removed
		f.mu.Lock()
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
	mapping, _ := endpoint.Mapping()
	name := f.nameFor(gvr, reflect.TypeFor[T](), opts)
	var scope *servedScope
	if opts.isDefaultIn(f.opts, mapping.Scope) {
		scope = newServedScope(endpoint, f.opts.Logger.With("informer", name))
	}
	var origins []origin[T]
	fetching := f.opts.Reflector
	if opts.Visible {
		endpoint, fetching.Filtered = endpoint.Visible(), true
	}
	for _, namespace := range opts.namespaces() {
		source := func(endpoint client.Resource[T]) reflector.ListerWatcher[T] {
			limited := reflector.Resource(endpoint.Namespace(namespace), opts.apply)
			if scope == nil {
				return limited
			}
			return scopedSource[T]{scope: scope, namespaced: limited, cluster: reflector.Resource(endpoint, opts.apply)}
		}
		from := origin[T]{source: source(endpoint.Interning()), plainSource: source(endpoint)}
		if len(opts.Namespaces) > 0 {
			from.namespace = namespace
		}
		origins = append(origins, from)
	}
	i := newInformer(name, origins, fetching, f.opts.Resync)
	i.made = madeBy{gvr, opts, scope}
	i.scheme = endpoint.Client().Scheme()
	i.invalidBecause(errors.Join(f.invalid, endpoint.Err(), opts.validate(mapping.Scope)))
	if f.opts.NoInterning {
		i.noInterning = true
		i.disableInterning()
	}
	if f.opts.Disk.Directory != "" {
		i.invalidBecause(i.keepOnDisk(f.opts.Disk, gvr.Group+"/"+gvr.Version+"/"+gvr.Resource, opts.describe()))
	}
	if transform := f.opts.Transform; transform != nil {
		i.transform = func(obj T) (T, error) { return obj, transform(obj) }
		if i.transformIsSafe = isStripManagedFields(transform); !i.transformIsSafe {
			i.disableInterning()
		}
	}
	if f.opts.CompressObjects {
		i.invalidBecause(i.compressObjects())
	}
	if f.opts.MutationDetection.Interval != 0 {
		i.detectMutations(f.opts.MutationDetection)
	}
	if f.opts.ConsistencyCheckInterval != 0 {
		i.invalidBecause(i.checkWith(checkWith(f.opts.ConsistencyCheckInterval, f.client, endpoint, i.ListOptions)))
	}
	return i
}

// checkWith compares by what the endpoint's metadata says: the lists of
// several namespaces one after another, as if they were pages of one.
func checkWith[T client.Object](interval time.Duration, c *client.Client, endpoint client.Resource[T], selection func() ListOptions) ConsistencyCheckOptions[T] {
	metadata := client.Metadata(c, endpoint.GroupVersionResource())
	if selection().Visible {
		metadata = metadata.Visible()
	}
	return ConsistencyCheckOptions[T]{
		Interval: interval,
		List: func(ctx context.Context, opts metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
			selected := selection()
			namespaces := selected.namespaces()
			at := parseListToken(opts.Continue)
			opts.Continue = at.own
			namespace := namespaces[min(at.list, len(namespaces)-1)]
			page, err := reflector.Resource(metadata.Namespace(namespace), selected.apply).List(ctx, opts)
			if err == nil {
				err = at.check(page)
			}
			if err == nil && len(selected.Namespaces) > 0 {
				err = checkNamespace(page, namespace)
			}
			switch {
			case err != nil:
				return nil, err
			case page.Continue != "":
				page.Continue = listToken{list: at.list, own: page.Continue, version: page.ResourceVersion}.String()
			case at.list+1 < len(namespaces):
				page.Continue = listToken{list: at.list + 1}.String()
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
	resource := gvr.GroupResource().String()
	if gvr.Resource == "" {
		resource = typ.String() // a type that is not registered
	}
	name := func(limits string) string {
		if limits == "" {
			return resource
		}
		return resource + " (" + limits + ")"
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

// Scheme returns what the informer's client knows of Go types; [scheme.Default] if the
// informer was made by [New].
func (i *SharedInformer[T]) Scheme() *scheme.Scheme {
	if i.scheme == nil {
		return scheme.Default
	}
	return i.scheme
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
	if !f.closed {
		f.start(ctx, f.order)
	}
}

// StartInformer is Start of one informer of the factory, which leaves the others
// alone. It returns ErrStopped after Shutdown. For an informer that was started
// before it does nothing, also if that has stopped since.
func (f *Factory) StartInformer(ctx context.Context, i Informer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := slices.IndexFunc(f.order, func(own runnable) bool { return Informer(own) == i })
	switch {
	case n < 0:
		return fmt.Errorf("informer %s is not one of this factory", i.Name())
	case f.closed:
		return fmt.Errorf("informer %s: %w", i.Name(), ErrStopped)
	}
	f.start(ctx, f.order[n:n+1])
	return nil
}

// Remove stops an informer of the factory and forgets it: its objects are free once
// the program has dropped it, and For makes another. Remove waits for the
// handler calls of the informer that are running, so no handler may call it; a For
// of the same options waits meanwhile, too. For an informer that is not one of the factory
// it does nothing. An informer that the program runs itself goes on.
func (f *Factory) Remove(i Informer) {
	f.mu.Lock()
	n := slices.IndexFunc(f.order, func(own runnable) bool { return Informer(own) == i })
	if n < 0 {
		f.mu.Unlock()
		return
	}
	own := f.order[n]
	f.order = slices.Delete(slices.Clone(f.order), n, n+1)
	stop := f.started[own]
	delete(f.started, own)
	if stop == nil {
		f.forget(own)
		f.mu.Unlock()
		return
	}
	removed := make(chan struct{})
	f.removing[own] = removed
	f.mu.Unlock()

	stop()
	<-own.Done() // its files must be closed before another informer opens them
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(own)
	delete(f.removing, own)
	close(removed)
}

// forget has For make another informer in place of one. It needs f.mu.
func (f *Factory) forget(own runnable) {
	maps.DeleteFunc(f.informers, func(_ informerKey, other runnable) bool { return other == own })
}

// start runs those that have not been started. It needs f.mu.
func (f *Factory) start(ctx context.Context, informers []runnable) {
	for _, i := range informers {
		if f.started[i] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		f.started[i] = cancel
		f.running.Go(func() {
			defer cancel()
			if err := i.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				f.opts.Logger.Error("informer ended", "informer", i.Name(), "error", err)
			}
		})
	}
}

// WaitForSync waits, without polling, until every informer that has been
// started holds a complete list. If ctx ends before, or an informer stops
// without, the error names those that do not, and why. It does not wait for
// informers that were not started, but if there are informers and none was started, by
// the factory or the program, that is an error: their caches would be read as if they were
// complete.
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	var waiting []Informer
	running := len(f.order) == 0 // there is nothing to start
	for _, i := range f.order {
		running = running || i.hasStarted()
		if f.started[i] != nil {
			waiting = append(waiting, i)
		}
	}
	f.mu.Unlock()
	if len(waiting) == 0 && !running {
		return errNotStarted
	}
	for _, i := range waiting {
		if i.Err() != nil && !isSynced(i) {
			return stoppedEarly(i) // whatever those before it wait for
		}
	}
	for n, i := range waiting {
		select {
		case <-i.Synced():
		case <-i.Done():
			if !isSynced(i) {
				return stoppedEarly(i)
			}
		case <-ctx.Done():
			if missing := unsynced(waiting[n:]); len(missing) > 0 {
				return fmt.Errorf("no complete list yet of %s: %w", strings.Join(missing, ", "), context.Cause(ctx))
			}
			return nil
		}
	}
	return nil
}

// errNotStarted is the error of a factory whose Start was forgotten.
var errNotStarted = errors.New("none of the informers was started: call Factory.Start")

func stoppedEarly(i Informer) error {
	if err := i.Err(); err != nil {
		return fmt.Errorf("%w before there was a complete list: %w", ErrStopped, err)
	}
	return fmt.Errorf("informer %s stopped before it had a complete list: %w", i.Name(), ErrStopped)
}

// unsynced names those that have no complete list yet, with the last error.
func unsynced(informers []Informer) (names []string) {
	for _, i := range informers {
		if isSynced(i) {
			continue
		}
		name := i.Name()
		if err := i.Stats().Reflector.LastError; err != nil {
			name += fmt.Sprintf(" (last error: %v)", err)
		}
		names = append(names, name)
	}
	return names
}

func isSynced(i Informer) bool {
	select {
	case <-i.Synced():
		return true
	default:
		return false
	}
}

// Shutdown stops all informers and waits for them and for the handler calls
// that are running. It must not be called by a handler.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.closed = true
	for _, stop := range f.started {
		stop()
	}
	f.mu.Unlock()
	f.running.Wait()
}
