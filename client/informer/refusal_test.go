package informer

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/reflector"
)

// unwatched is a server that forbids watches.
type unwatched struct{ *script }

func (unwatched) Watch(context.Context, metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("you may not watch"))
}

// A watch that is refused after the list is no refusal of the list, also while the cache does
// not show all of it yet.
func TestRefusedWatchIsNoRefusedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", unwatched{s}, reflector.Options{Logger: slog.New(slog.DiscardHandler)})
		if err := i.equip(""); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.follow(ctx) }() // and nothing applies what is listed
		synctest.Wait()
		if s.listCount() == 0 || i.Stats().Reflector.LastError == nil || i.lastRefusal(nil) != nil {
			t.Errorf("%d lists, last error %v, refusal %v", s.listCount(), i.Stats().Reflector.LastError, i.lastRefusal(nil))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
