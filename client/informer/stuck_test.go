package informer

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// stuck is a script whose watches end with an error as soon as they are opened, while
// there is one.
type stuck struct {
	*script
	err  error // guarded by script.mu
	wait time.Duration
}

type failing struct {
	err  error
	wait time.Duration
}

func (s failing) Next() (ev client.WatchEvent[*corev1.Pod], err error) {
	time.Sleep(s.wait)
	return ev, s.err
}

func (failing) Close() {}

func (s *stuck) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return failing{err, s.wait}, nil
	}
	return s.script.Watch(ctx, opts)
}

func (s *stuck) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
}

// A view into which nothing comes any more is not healthy, though its watches are opened
// again and again. It is healthy again with what the server then says.
func TestHealthOfAStuckInformer(t *testing.T) {
	for name, s := range map[string]stuck{
		"over the limit":      {err: fmt.Errorf("watch pods: %w", client.ErrFrameTooLarge)},
		"undecodable":         {err: &client.DecodeError{What: "event", Err: io.ErrUnexpectedEOF}},
		"an error":            {err: apierrors.NewInternalError(io.ErrUnexpectedEOF)},
		"a later error":       {err: apierrors.NewInternalError(io.ErrUnexpectedEOF), wait: 20 * time.Second},
		"no code":             {err: &apierrors.StatusError{ErrStatus: metav1.Status{Message: "too old"}}},
		"no permission, late": {err: apierrors.NewForbidden(corev1.Resource("pods"), "", nil), wait: 2 * time.Second},
		"busy":                {err: apierrors.NewTooManyRequests("", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &s
				s.script = newScript()
				s.set("a", 1, nil)
				i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- i.Run(ctx) }()
				time.Sleep(5 * time.Minute)
				if err := i.Healthy(2 * time.Minute); err == nil {
					t.Errorf("healthy, and %+v", i.Freshness())
				}
				s.mend()
				time.Sleep(time.Minute)
				s.set("b", 2, nil)
				synctest.Wait()
				if err := i.Healthy(2 * time.Minute); err != nil || i.Lister().Len() != 2 {
					t.Errorf("%v, with %d objects", err, i.Lister().Len())
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Where watches are empty, lists stand for them.
func TestHealthWithEmptyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{script: newScript(), err: io.EOF}
		s.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		time.Sleep(time.Minute)
		for range 10 {
			s.set("a", 1, nil)
			time.Sleep(5 * time.Minute)
			if pod, _ := i.Lister().Get("ns", "a"); pod.ResourceVersion != i.LastSyncResourceVersion() || i.LastSyncResourceVersion() != fmt.Sprint(s.version) {
				t.Errorf("the cache has %s at %s, the server %d", pod.ResourceVersion, i.LastSyncResourceVersion(), s.version)
			}
			if err := i.Healthy(5 * time.Minute); err != nil {
				t.Error(err)
			}
		}
		cancel()
		<-done
	})
}
