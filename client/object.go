package client

import (
	"errors"

	"github.com/levelwire/levelwire/client/internal/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Object is what a resource's items are: *corev1.Pod,
// *unstructured.Unstructured, *metav1.PartialObjectMetadata, ...
type Object interface {
	runtime.Object
	metav1.Object
}

// List is one answer to [Resource.List]: a page, or everything.
type List[T Object] struct {
	metav1.ListMeta
	// Items is never nil after a successful List. The objects belong to the
	// caller; the client does not write to them any more.
	Items []T
}

// WatchEvent is one event of a watch. Type is never watch.Error: the server's
// in-stream errors are returned as Go errors by [Watch.Next].
type WatchEvent[T Object] struct {
	Type watch.EventType
	// Object is the new state; for watch.Deleted the last state; for
	// watch.Bookmark an object that is empty but for its resourceVersion and
	// annotations.
	Object T
}

// InitialEventsEnd returns whether the event is the bookmark that closes the
// initial events of a streaming list (KEP-3157).
func (e WatchEvent[T]) InitialEventsEnd() bool {
	return e.Type == watch.Bookmark &&
		e.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

var (
	// ErrClosed is returned by [Watch.Next] after [Watch.Close].
	ErrClosed = errors.New("watch is closed")
	// ErrFrameTooLarge is returned when one event or one item is larger than
	// [Options.MaxFrameBytes].
	ErrFrameTooLarge = codec.ErrFrameTooLarge
)

// DecodeError is an answer that could be read but not understood: the
// connection is fine, what the server sent is not.
type DecodeError struct {
	What string // what was being decoded: "list", "watch event", "object"
	Err  error
}

func (e *DecodeError) Error() string { return "decoding " + e.What + ": " + e.Err.Error() }

// Unwrap returns the decoder's error.
func (e *DecodeError) Unwrap() error { return e.Err }
