package informer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// unversioned is a script that shows its objects without resourceVersions, and that
// begins each watch with the state of the moment.
type unversioned struct{ *script }

func withoutVersion(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = ""
	return pod
}

func (s unversioned) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	list, err := s.script.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	list.ResourceVersion = ""
	for n, pod := range list.Items {
		list.Items[n] = withoutVersion(pod)
	}
	return list, err
}

func (s unversioned) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	if opts.ResourceVersion != "" {
		return nil, errors.New("there are no versions")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &unversionedStream{stream: &stream{script: s.script, ctx: ctx, next: s.version, cut: s.cut, closed: make(chan struct{})}}
	for _, pod := range s.pods {
		w.initial = append(w.initial, client.WatchEvent[*corev1.Pod]{Type: watch.Added, Object: withoutVersion(pod)})
	}
	return w, nil
}

type unversionedStream struct {
	*stream
	initial []client.WatchEvent[*corev1.Pod]
}

func (w *unversionedStream) Next() (client.WatchEvent[*corev1.Pod], error) {
	if len(w.initial) > 0 {
		ev := w.initial[0]
		w.initial = w.initial[1:]
		return ev, nil
	}
	ev, err := w.stream.Next()
	if err == nil {
		ev.Object = withoutVersion(ev.Object)
	}
	return ev, err
}

// TestServerWithoutVersions: an informer follows a server whose lists and objects have no
// resourceVersions, and handlers see changes that only a list has shown.
func TestServerWithoutVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unversioned{newScript()}
		s.set("a", 1, map[string]string{"app": "x"})
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		handled := 0
		_, err := i.AddHandler(HandlerFuncs[*corev1.Pod]{
			Update: func(_, pod *corev1.Pod) {
				if pod.Labels["app"] == "z" {
					handled++
				}
			},
		}, HandlerOptions{})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		time.Sleep(time.Minute)
		s.set("b", 2, nil)
		synctest.Wait()
		if err := i.Healthy(2 * time.Minute); err != nil || i.Lister().Len() != 2 || i.LastSyncResourceVersion() != "" {
			t.Errorf("%v, %v at %q", err, i.Lister().Keys(), i.LastSyncResourceVersion())
		}
		// No event shows what happens while no watch is open.
		s.setDown(true)
		s.set("a", 1, map[string]string{"app": "z"})
		s.remove("b")
		s.set("c", 3, nil)
		s.endWatches()
		s.setDown(false)
		time.Sleep(time.Minute)
		if err := i.Healthy(2 * time.Minute); err != nil || i.Lister().Len() != 2 || handled != 1 {
			t.Errorf("%v, %v, handled %d changes", err, i.Lister().Keys(), handled)
		}
		if n := i.ReflectorStats().Lists[reflector.ListUnversioned]; n == 0 {
			t.Error("no list says that it is for want of versions")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
