package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/client/rest"
)

// Options configures a Factory.
type Options struct {
	// Namespace limits all informers that do not say otherwise. Default: all.
	Namespace string
	// Resync is HandlerOptions.Resync for handlers that do not say. Default:
	// never.
	Resync time.Duration
	// Reflector is how the informers list and watch; Name and Logger are set
	// for each.
	Reflector reflector.Options
	// Logger receives what happens. Default: discard.
	Logger *slog.Logger
	// Disk keeps the objects of all informers in files. Its zero value does
	// not.
	Disk DiskOptions
	// RepairInterval is how often each informer compares names and versions
	// with the server, and mends what differs. Default: never.
	RepairInterval time.Duration
}

// ListOptions says which objects of a resource an informer looks at. Each
// different value is another informer with a watch of its own.
type ListOptions struct {
	// Namespace limits the informer. Default: the factory's.
	Namespace string
	// LabelSelector and FieldSelector are applied by the server.
	LabelSelector, FieldSelector string
}

// Factory holds one informer per resource and ListOptions. All methods may be
// called concurrently.
type Factory struct {
	client *rest.Client
	opts   Options

	mu        sync.Mutex
	informers map[informerKey]shared
	order     []shared
	started   map[shared]bool
	stop      []context.CancelFunc
	closed    bool
	running   sync.WaitGroup
}

// shared is what a Factory does with an informer of any type.
type shared interface {
	Name() string
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	Done() <-chan struct{}
	Healthy(limit time.Duration) error
}

type informerKey struct {
	typ  reflect.Type
	gvr  schema.GroupVersionResource
	opts ListOptions
}

// NewFactory returns a factory without informers.
func NewFactory(client *rest.Client, opts Options) *Factory {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Reflector.Logger = opts.Logger
	if opts.Disk.Identify == nil {
		opts.Disk.Identify = clusterOf(client)
	}
	return &Factory{client: client, opts: opts, informers: map[informerKey]shared{}, started: map[shared]bool{}}
}

// For returns the factory's informer of a built-in type, making it if it is
// the first call with these options. It has to be started by
// [Factory.Start], which may be called again for informers that came later.
func For[T rest.Object](f *Factory, opts ListOptions) *SharedInformer[T] {
	return of(f, rest.For[T](f.client), opts)
}

// ForResource is For with a Go type for custom resources; newT must return a
// new, empty object at each call.
func ForResource[T rest.Object](f *Factory, gvr schema.GroupVersionResource, newT func() T, opts ListOptions) *SharedInformer[T] {
	return of(f, rest.ForResource(f.client, gvr, newT), opts)
}

// Dynamic is For without a Go type.
func Dynamic(f *Factory, gvr schema.GroupVersionResource, opts ListOptions) *SharedInformer[*unstructured.Unstructured] {
	return of(f, rest.Dynamic(f.client, gvr), opts)
}

// Metadata is For of which the server sends the metadata only.
func Metadata(f *Factory, gvr schema.GroupVersionResource, opts ListOptions) *SharedInformer[*metav1.PartialObjectMetadata] {
	return of(f, rest.Metadata(f.client, gvr), opts)
}

func of[T rest.Object](f *Factory, endpoint rest.Resource[T], opts ListOptions) *SharedInformer[T] {
	if opts.Namespace == "" {
		opts.Namespace = f.opts.Namespace
	}
	gvr := endpoint.GroupVersionResource()
	key := informerKey{reflect.TypeFor[T](), gvr, opts}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.informers[key]; ok {
		return known.(*SharedInformer[T])
	}
	source := reflector.Resource(endpoint.Namespace(opts.Namespace), func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = opts.LabelSelector, opts.FieldSelector
	})
	i := newInformer(nameOf(gvr, opts), source, f.opts.Reflector, f.opts.Resync)
	if f.opts.Disk.Directory != "" {
		i.invalid = i.keepOnDisk(f.opts.Disk, gvr.Group+"/"+gvr.Version+"/"+gvr.Resource, opts.describe())
	}
	if f.opts.RepairInterval != 0 && i.invalid == nil {
		i.invalid = i.Repair(repairWith(f.opts.RepairInterval, f.client, endpoint, opts))
	}
	f.informers[key] = i
	f.order = append(f.order, i)
	return i
}

// repairWith compares by what the endpoint's metadata says.
func repairWith[T rest.Object](interval time.Duration, client *rest.Client, endpoint rest.Resource[T], selected ListOptions) RepairOptions[T] {
	metadata := rest.Metadata(client, endpoint.GroupVersionResource()).Namespace(selected.Namespace)
	return RepairOptions[T]{
		Interval: interval,
		List: func(ctx context.Context, opts metav1.ListOptions) (*rest.List[*metav1.PartialObjectMetadata], error) {
			opts.LabelSelector, opts.FieldSelector = selected.LabelSelector, selected.FieldSelector
			return metadata.List(ctx, opts)
		},
		Get: func(ctx context.Context, namespace, name string) (T, error) {
			return endpoint.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}
}

// nameOf is how an informer is called in logs: "pods", "deployments.apps
// (namespace x, labels app=y)".
func nameOf(gvr schema.GroupVersionResource, opts ListOptions) string {
	name := gvr.GroupResource().String()
	if limits := opts.describe(); limits != "" {
		name += " (" + limits + ")"
	}
	return name
}

// describe says what is selected; "" for everything.
func (opts ListOptions) describe() string {
	var limits []string
	for _, limit := range []struct{ what, value string }{
		{"namespace", opts.Namespace}, {"labels", opts.LabelSelector}, {"fields", opts.FieldSelector},
	} {
		if limit.value != "" {
			limits = append(limits, limit.what+" "+limit.value)
		}
	}
	return strings.Join(limits, ", ")
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

// WaitForSync waits until every informer that has been started holds a
// complete list. If ctx ends before, or an informer stops without, the error
// names those that do not.
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	var waiting []shared
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
			if missing := unsynced(waiting[n : n+1]); len(missing) > 0 {
				return fmt.Errorf("informer %s stopped before it had a complete list: %w", missing[0], ErrStopped)
			}
		case <-ctx.Done():
			return fmt.Errorf("no complete list yet of %s: %w", strings.Join(unsynced(waiting[n:]), ", "), ctx.Err())
		}
	}
	return nil
}

func unsynced(informers []shared) (names []string) {
	for _, i := range informers {
		select {
		case <-i.Synced():
		default:
			names = append(names, i.Name())
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
