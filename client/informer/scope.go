package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/client/scheme"
)

// servedScope is the scope that a resource has for an informer with its factory's
// namespace. That namespace is none of a cluster-scoped resource. The client's scheme may
// not know which it is, and a CustomResourceDefinition may come back as the other, so the
// server is asked when something does not fit.
type servedScope struct {
	log     *slog.Logger
	known   bool        // to the scheme, which must not be wrong
	cluster atomic.Bool // objects are in no namespace
	// scope and check are those of client.Resource: ServedScope, and CheckScope in all
	// namespaces.
	scope func(context.Context) (scheme.Scope, error)
	check func(context.Context) error
}

func newServedScope[T client.Object](endpoint client.Resource[T], log *slog.Logger) *servedScope {
	mapping, _ := endpoint.Mapping()
	s := &servedScope{log: log, known: mapping.Scope != "", scope: endpoint.ServedScope, check: endpoint.Namespace("").CheckScope}
	s.cluster.Store(mapping.Scope == scheme.Cluster)
	return s
}

// isCluster reports whether the factory's namespace does not apply. A nil servedScope is
// that of an informer whose namespaces are its own.
func (s *servedScope) isCluster() bool { return s != nil && s.cluster.Load() }

// restored notes the scope of objects that were read from disk, before the first request:
// only there can a watch go on from their version.
func (s *servedScope) restored(cluster bool) {
	if s != nil && !s.known {
		s.cluster.Store(cluster)
	}
}

// becomesCluster reports whether an error of a request in the namespace says that the
// resource is cluster-scoped, and remembers it.
func (s *servedScope) becomesCluster(err error) bool {
	var wrong *client.ScopeError
	if s.known || !errors.As(err, &wrong) || wrong.Scope != scheme.Cluster {
		return false
	}
	if s.cluster.CompareAndSwap(false, true) {
		s.log.Info("the resource is cluster-scoped: the factory's namespace does not apply", "namespace", wrong.Namespace)
	}
	return true
}

// becomesNamespaced asks the server whether the resource is namespaced after all, and
// remembers it. If the scheme has it as cluster-scoped, that is a *client.ScopeError.
func (s *servedScope) becomesNamespaced(ctx context.Context) (bool, error) {
	if s.known {
		return false, s.check(ctx)
	}
	scope, err := s.scope(ctx)
	if err != nil || scope != scheme.Namespaced {
		return false, err
	}
	if s.cluster.CompareAndSwap(true, false) {
		s.log.Info("the resource is namespaced now: the factory's namespace applies")
	}
	return true, nil
}

// errScopeChanged has the reflector list: a resourceVersion of the other scope is none to
// go on from.
func errScopeChanged() error {
	return apierrors.NewResourceExpired("the scope of the resource is another than before")
}

// scopedSource lists and watches in the factory's namespace, or in none if the resource is
// cluster-scoped.
type scopedSource[T client.Object] struct {
	scope               *servedScope
	namespaced, cluster reflector.ListerWatcher[T]
}

func (s scopedSource[T]) current() reflector.ListerWatcher[T] {
	if s.scope.isCluster() {
		return s.cluster
	}
	return s.namespaced
}

func (s scopedSource[T]) List(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error) {
	if s.scope.isCluster() {
		list, err := s.cluster.List(ctx, opts)
		changed, err := s.leavesCluster(ctx, err, list != nil && anyInNamespace(list.Items))
		switch {
		case err != nil:
			return nil, err
		case !changed:
			return list, nil
		case opts.Continue != "":
			return nil, errScopeChanged()
		}
		return s.namespaced.List(ctx, opts)
	}
	list, err := s.namespaced.List(ctx, opts)
	switch {
	case !s.scope.becomesCluster(err):
		return list, err
	case opts.Continue != "":
		return nil, errScopeChanged()
	}
	return s.cluster.List(ctx, opts)
}

func (s scopedSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[T], error) {
	lists := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if s.scope.isCluster() {
		stream, err := s.cluster.Watch(ctx, opts)
		changed, err := s.leavesCluster(ctx, err, false)
		switch {
		case err != nil:
			return nil, err
		case !changed:
			return s.checked(ctx, stream, opts), nil
		case !lists:
			return nil, errScopeChanged()
		}
		return s.namespaced.Watch(ctx, opts)
	}
	stream, err := s.namespaced.Watch(ctx, opts)
	switch {
	case !s.scope.becomesCluster(err):
		return stream, err
	case !lists:
		return nil, errScopeChanged()
	}
	if stream, err = s.cluster.Watch(ctx, opts); err != nil {
		return nil, err
	}
	return s.checked(ctx, stream, opts), nil
}

// leavesCluster reports whether the resource turns out to be namespaced. The server is
// asked if it does not have the resource, or refuses it, outside of namespaces, or has sent
// objects that are in some. Otherwise the error is that of the request, or says that the
// objects cannot be explained.
func (s scopedSource[T]) leavesCluster(ctx context.Context, err error, inNamespace bool) (bool, error) {
	if !inNamespace && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return false, err
	}
	changed, asking := s.scope.becomesNamespaced(ctx)
	var wrong *client.ScopeError
	switch {
	case changed:
		return true, nil
	case errors.As(asking, &wrong):
		return false, wrong
	case err == nil && asking != nil:
		return false, fmt.Errorf("objects of a cluster-scoped resource are in namespaces, and the server does not say which scope it has: %w", asking)
	default:
		return false, err
	}
}

// Served implements reflector.Discoverer.
func (s scopedSource[T]) Served(ctx context.Context) (bool, error) {
	if discoverer, ok := s.current().(reflector.Discoverer); ok {
		return discoverer.Served(ctx)
	}
	return false, errors.ErrUnsupported
}

// Difference implements reflector.Differ. A list decides about objects that do not fit.
func (s scopedSource[T]) Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*client.Difference[T], error) {
	differ, ok := s.current().(reflector.Differ[T])
	if !ok {
		return nil, client.ErrNoDifference
	}
	cluster := s.scope.isCluster()
	d, err := differ.Difference(ctx, held, opts)
	if err == nil && cluster && anyInNamespace(d.Received) {
		return nil, fmt.Errorf("%w: objects of a cluster-scoped resource are in namespaces", client.ErrListInstead)
	}
	return d, err
}

func anyInNamespace[T client.Object](objects []T) bool {
	for _, obj := range objects {
		if obj.GetNamespace() != "" {
			return true
		}
	}
	return false
}

func (s scopedSource[T]) checked(ctx context.Context, stream reflector.Stream[T], opts metav1.ListOptions) reflector.Stream[T] {
	checked := &clusterStream[T]{Stream: stream, ctx: ctx, source: s}
	if opts.TimeoutSeconds != nil {
		checked.asked = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	return checked
}

// clusterStream is a watch of a cluster-scoped resource. It ends when an object is in a
// namespace and the server says that the resource is namespaced.
type clusterStream[T client.Object] struct {
	reflector.Stream[T]
	ctx       context.Context // of the watch
	source    scopedSource[T]
	asked     time.Duration
	confirmed bool // the server was asked, and the resource is cluster-scoped
}

func (s *clusterStream[T]) Next() (client.WatchEvent[T], error) {
	event, err := s.Stream.Next()
	if err != nil || s.confirmed || event.Type == watch.Bookmark || event.Object.GetNamespace() == "" {
		return event, err
	}
	changed, err := s.source.leavesCluster(s.ctx, nil, true)
	if changed {
		err = errScopeChanged()
	}
	s.confirmed = err == nil
	return event, err
}

// Timeout is that of the stream if it has one of its own.
func (s *clusterStream[T]) Timeout() time.Duration {
	if own, ok := s.Stream.(interface{ Timeout() time.Duration }); ok {
		return own.Timeout()
	}
	return s.asked
}
