package informer_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// sourceOf lists one object of version 1, and sends what is in a channel.
type sourceOf[T client.Object] struct {
	listed T
	events chan T
}

func (s sourceOf[T]) List(context.Context, metav1.ListOptions) (*client.List[T], error) {
	return &client.List[T]{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []T{s.listed}}, nil
}

func (s sourceOf[T]) Watch(ctx context.Context, _ metav1.ListOptions) (reflector.Stream[T], error) {
	return streamOf[T]{s, ctx}, nil
}

type streamOf[T client.Object] struct {
	source sourceOf[T]
	ctx    context.Context
}

func (s streamOf[T]) Next() (client.WatchEvent[T], error) {
	select {
	case obj := <-s.source.events:
		return client.WatchEvent[T]{Type: watch.Modified, Object: obj}, nil
	case <-s.ctx.Done():
		return client.WatchEvent[T]{}, io.ErrUnexpectedEOF
	}
}

func (s streamOf[T]) Close() {}

func lampAt(version, watts string) *lamp {
	return &lamp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version}, Bulb: &bulb{watts}}
}

// Objects without a version are compared as a whole, also those with members whose fields are not exported, as times
// of Go have: apimachinery's comparison panics for these.
func TestObjectsWithoutVersionsOfAnyType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOf[*lamp]{lampAt("1", "40"), make(chan *lamp)}
		i := informer.New[*lamp]("lamps", source, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
		if err := i.SetTransform(func(l *lamp) (*lamp, error) { l.ResourceVersion = ""; return l, nil }); err != nil {
			t.Fatal(err)
		}
		var updates []string
		_, err := i.AddHandler(informer.HandlerFuncs[*lamp]{Update: func(_, l *lamp) { updates = append(updates, l.Bulb.watts) }}, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, i)
		for _, l := range []*lamp{lampAt("2", "40"), lampAt("3", "60"), lampAt("4", "60"), lampAt("5", "75")} {
			source.events <- l
			synctest.Wait()
		}
		if len(updates) != 2 || updates[0] != "60" || updates[1] != "75" {
			t.Errorf("the handler got %v", updates)
		}
		stop()
	})
}

func start[T client.Object](t *testing.T, i *informer.SharedInformer[T]) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	synctest.Wait()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
