package informer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// observedSource wraps a namespaceWatch's source for its reflector. It records
// what the reflector does not report: that a list has begun, and that the server
// has resumed from a resourceVersion that came from disk.
type observedSource[T client.Object] struct{ namespaceWatch *namespaceWatch[T] }

func (w observedSource[T]) List(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error) {
	w.namespaceWatch.listBegins()
	return w.namespaceWatch.source.List(ctx, opts)
}

func (w observedSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[T], error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if initial {
		w.namespaceWatch.listBegins()
	}
	stream, err := w.namespaceWatch.source.Watch(ctx, opts)
	if err != nil || initial || !w.namespaceWatch.informer.isResuming() {
		return stream, err
	}
	s := &confirming[T]{Stream: stream, confirm: w.namespaceWatch.informer.confirm}
	s.timer = time.AfterFunc(graceOfResume, w.namespaceWatch.informer.confirm)
	return s, nil
}

// Difference asks for one if the source can; it stands for a list.
func (w observedSource[T]) Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*client.Difference[T], error) {
	differ, ok := w.namespaceWatch.source.(reflector.Differ[T])
	if !ok {
		return nil, client.ErrNoDifference
	}
	w.namespaceWatch.listBegins()
	return differ.Difference(ctx, held, opts)
}

// graceOfResume is how long a watch from a restored version must stay open to
// count as accepted if it says nothing: a server that no longer has the
// resourceVersion says so at once, though within the stream.
const graceOfResume = 500 * time.Millisecond

// confirming is the first stream from a restored version.
type confirming[T client.Object] struct {
	reflector.Stream[T]
	confirm func()
	timer   *time.Timer
	done    bool
}

func (s *confirming[T]) Next() (client.WatchEvent[T], error) {
	event, err := s.Stream.Next()
	switch {
	case err != nil:
		s.timer.Stop()
	case !s.done:
		s.timer.Stop()
		s.done = true
		s.confirm()
	}
	return event, err
}

func (s *confirming[T]) Close() {
	s.timer.Stop()
	s.Stream.Close()
}
