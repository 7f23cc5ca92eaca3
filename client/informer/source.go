package informer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// witness is a part's source as its reflector sees it. It notes what the reflector
// does not tell: that a list has begun, and that the server goes on from a
// version that came from disk.
type witness[T client.Object] struct{ part *part[T] }

func (w witness[T]) List(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error) {
	w.part.listBegins()
	return w.part.source.List(ctx, opts)
}

func (w witness[T]) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[T], error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if initial {
		w.part.listBegins()
	}
	stream, err := w.part.source.Watch(ctx, opts)
	if err != nil || initial || !w.part.informer.isResuming() {
		return stream, err
	}
	s := &confirming[T]{Stream: stream, confirm: w.part.informer.confirm}
	s.timer = time.AfterFunc(graceOfResume, w.part.informer.confirm)
	return s, nil
}

// Difference asks for one if the source can; it stands for a list.
func (w witness[T]) Difference(ctx context.Context, held []T, opts metav1.ListOptions) (*client.Difference[T], error) {
	differ, ok := w.part.source.(reflector.Differ[T])
	if !ok {
		return nil, client.ErrNoDifference
	}
	w.part.listBegins()
	return differ.Difference(ctx, held, opts)
}

// graceOfResume is how long a watch from a restored version must stay open to
// count as accepted if it says nothing: a server that has forgotten the
// version says so at once, though within the stream.
const graceOfResume = 500 * time.Millisecond

// confirming is the first stream from a restored version.
type confirming[T client.Object] struct {
	reflector.Stream[T]
	confirm func()
	timer   *time.Timer
	told    bool
}

func (s *confirming[T]) Next() (client.WatchEvent[T], error) {
	event, err := s.Stream.Next()
	switch {
	case err != nil:
		s.timer.Stop()
	case !s.told:
		s.timer.Stop()
		s.told = true
		s.confirm()
	}
	return event, err
}

func (s *confirming[T]) Close() {
	s.timer.Stop()
	s.Stream.Close()
}
