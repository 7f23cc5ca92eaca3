package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// observedSource wraps a namespaceWatch's source for its reflector. It records
// what the reflector does not report: that a list has begun, and that the server
// has resumed from a resourceVersion that came from disk.
type observedSource[T client.Object] struct{ namespaceWatch *namespaceWatch[T] }

func (w observedSource[T]) List(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error) {
	if !w.looks(opts) {
		w.namespaceWatch.listBegins()
	}
	list, err := w.namespaceWatch.source.List(ctx, opts)
	if err == nil {
		err = w.namespaceWatch.ownsAll("list", list.Items)
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// looks reports whether the reflector only asks how far the server is, or whether it answers: such a list is of one
// object, and does not reach the cache.
func (w observedSource[T]) looks(opts metav1.ListOptions) bool {
	return opts.Limit == 1 && w.namespaceWatch.informer.opts.PageSize != 1
}

func (w observedSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[T], error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if initial {
		w.namespaceWatch.listBegins()
	}
	informer := w.namespaceWatch.informer
	if initial || !informer.isResuming() {
		return w.open(ctx, opts)
	}
	if informer.opts.PollTimeout == 0 {
		seconds := int64(confirmingTimeout / time.Second)
		opts.TimeoutSeconds = &seconds
	}
	stream, err := w.open(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &confirming[T]{stream: stream, confirm: informer.confirm, from: opts.ResourceVersion, opened: time.Now(),
		timeout: time.Duration(*opts.TimeoutSeconds) * time.Second}, nil
}

// open opens a stream in which objects of another namespace are errors.
func (w observedSource[T]) open(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[T], error) {
	stream, err := w.namespaceWatch.source.Watch(ctx, opts)
	if err != nil || w.namespaceWatch.namespace == "" {
		return stream, err
	}
	own := ownStream[T]{Stream: stream, namespaceWatch: w.namespaceWatch}
	if opts.TimeoutSeconds != nil {
		own.asked = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	return own, nil
}

// ownStream is the stream of one namespace of several.
type ownStream[T client.Object] struct {
	reflector.Stream[T]
	namespaceWatch *namespaceWatch[T]
	asked          time.Duration
}

// Timeout is that of the stream if it has one of its own.
func (s ownStream[T]) Timeout() time.Duration {
	if other, ok := s.Stream.(interface{ Timeout() time.Duration }); ok {
		return other.Timeout()
	}
	return s.asked
}

func (s ownStream[T]) Next() (client.WatchEvent[T], error) {
	event, err := s.Stream.Next()
	if err == nil && event.Type != watch.Bookmark {
		err = s.namespaceWatch.owns("event", event.Object)
	}
	return event, err
}

// owns returns an error for an object that is not in the namespace. No list of the namespace
// would ever remove it from the cache, so what has brought it counts as what cannot be decoded.
func (p *namespaceWatch[T]) owns(what string, obj T) error {
	if p.namespace == "" || obj.GetNamespace() == p.namespace || obj.GetName() == "" { // the reflector looks at names
		return nil
	}
	return &client.DecodeError{What: what, Err: fmt.Errorf("%q, asked for in namespace %q, is in namespace %q", obj.GetName(), p.namespace, obj.GetNamespace())}
}

func (p *namespaceWatch[T]) ownsAll(what string, objects []T) error {
	for _, obj := range objects {
		if err := p.owns(what, obj); err != nil {
			return err
		}
	}
	return nil
}

// Served asks the server's discovery if the source can.
func (w observedSource[T]) Served(ctx context.Context) (bool, error) {
	discoverer, ok := w.namespaceWatch.source.(reflector.Discoverer)
	if !ok {
		return false, errors.ErrUnsupported
	}
	return discoverer.Served(ctx)
}

// Difference asks for one if the source can; it stands for a list.
func (w observedSource[T]) Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*client.Difference[T], error) {
	differ, ok := w.namespaceWatch.source.(reflector.Differ[T])
	if !ok {
		return nil, client.ErrNoDifference
	}
	w.namespaceWatch.listBegins()
	difference, err := differ.Difference(ctx, held, opts)
	if err == nil {
		err = w.namespaceWatch.ownsAll("difference", difference.Received)
	}
	if err != nil {
		return nil, err
	}
	return difference, nil
}

// confirmingTimeout is for how long the first watch from a restored version asks
// the server to keep it open. Servers send a bookmark about two seconds before
// the end, so a quiet server confirms the version within seconds. Silence
// confirms nothing: the server may be about to say that it no longer has the
// version.
const confirmingTimeout = 3 * time.Second

// confirming is a stream from a restored version. The first event or bookmark
// that is not older confirms the version, and so does an end that comes in due
// time and without an error.
type confirming[T client.Object] struct {
	stream  reflector.Stream[T]
	confirm func()
	from    string
	opened  time.Time
	timeout time.Duration // asked for
	done    bool
}

func (s *confirming[T]) Next() (client.WatchEvent[T], error) {
	event, err := s.stream.Next()
	if !s.done && s.confirmedBy(event, err) {
		s.done = true
		s.confirm()
	}
	return event, err
}

func (s *confirming[T]) confirmedBy(event client.WatchEvent[T], err error) bool {
	if err != nil {
		return errors.Is(err, io.EOF) && time.Since(s.opened) >= s.timeout*3/4
	}
	return latest(s.from, event.Object.GetResourceVersion()) != s.from || event.Object.GetResourceVersion() == s.from
}

func (s *confirming[T]) Close() { s.stream.Close() }

// Timeout tells the reflector, which has asked for a longer time.
func (s *confirming[T]) Timeout() time.Duration { return s.timeout }
