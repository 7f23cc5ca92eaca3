package reflector

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/contain"
)

// containedSource is the program's ListerWatcher. It decodes objects with methods of their Go types (UnmarshalJSON,
// UnmarshalText of the keys of a map): where one panics, the answer is one that cannot be decoded, and the process
// and what the store holds stay what they are.
type containedSource[T client.Object] struct{ source ListerWatcher[T] }

// decoding calls a function of the source, which what names as in a client.DecodeError. The function returns
// whether there is an answer.
func decoding(what string, call func() (answered bool, err error)) (err error) {
	answered := false
	if panicked := contain.Call("the source", func() { answered, err = call() }); panicked != nil {
		return &client.DecodeError{What: what, Err: panicked}
	}
	if err == nil && !answered {
		return &client.DecodeError{What: what, Err: errNothing}
	}
	return err
}

var errNothing = errors.New("the source has returned nil, or an object that is nil")

func (c containedSource[T]) List(ctx context.Context, opts metav1.ListOptions) (list *client.List[T], err error) {
	err = decoding("list", func() (bool, error) {
		list, err = c.source.List(ctx, opts)
		return list != nil && !slices.ContainsFunc(list.Items, isNil), err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (c containedSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[T], error) {
	var stream Stream[T]
	err := decoding("watch", func() (_ bool, err error) {
		stream, err = c.source.Watch(ctx, opts)
		return stream != nil, err
	})
	if err != nil {
		return nil, err
	}
	if other, ok := stream.(interface{ Timeout() time.Duration }); ok {
		return containedTimedStream[T]{containedStream[T]{stream}, other.Timeout}, nil
	}
	return containedStream[T]{stream}, nil
}

// containedStream is a stream of the source.
type containedStream[T client.Object] struct{ stream Stream[T] }

func (c containedStream[T]) Next() (ev client.WatchEvent[T], err error) {
	defer func() {
		if r := recover(); r != nil {
			ev, err = client.WatchEvent[T]{}, &client.DecodeError{What: "event", Err: contain.Recovered("the source", r)}
		}
	}()
	if ev, err = c.stream.Next(); err == nil && isNil(ev.Object) {
		err = &client.DecodeError{What: "event", Err: errNothing}
	}
	return ev, err
}

func (c containedStream[T]) Close() { c.stream.Close() }

// containedTimedStream is one that has a Timeout.
type containedTimedStream[T client.Object] struct {
	containedStream[T]
	timeout func() time.Duration
}

func (c containedTimedStream[T]) Timeout() time.Duration { return c.timeout() }

// differenceOf asks for a difference.
func differenceOf[T client.Object](ctx context.Context, differ Differ[T], held []T, version string) (d *client.Difference[T], err error) {
	err = decoding("difference", func() (bool, error) {
		d, err = differ.Difference(ctx, held, metav1.ListOptions{ResourceVersion: version})
		return d != nil && !slices.ContainsFunc(d.Received, isNil), err
	})
	return d, err
}

// isNil reports whether there is nothing in the place of an object: every call of it would panic.
func isNil[T client.Object](obj T) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
