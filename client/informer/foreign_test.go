package informer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// sendFrom has the server send an event of a pod in a namespace.
func (s *script) sendFrom(kind watch.EventType, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(kind, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// TestObjectsOfOtherNamespaces: what the watch of one namespace of several says of an object in
// another, or in none, cannot be right. No list of that namespace would ever remove it. It
// counts as what cannot be decoded.
func TestObjectsOfOtherNamespaces(t *testing.T) {
	for name, foreign := range map[string]string{"a third": "third", "the other": "other", "none": ""} {
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, other := newScript(), newScript()
					i := newInformer("pods", []origin[*corev1.Pod]{{namespace: "ns", source: s}, {namespace: "other", source: other}}, reflector.Options{PagedList: true}, 0)
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error, 1)
					go func() { done <- i.Run(ctx) }()
					synctest.Wait()
					other.bookmark()
					other.sendFrom(watch.Added, "other", "b")
					s.bookmark()
					s.set("a", 1, nil)
					s.sendFrom(kind, foreign, "b")
					time.Sleep(time.Minute)
					synctest.Wait()
					keys := i.Lister().Keys()
					if slices.Sort(keys); !slices.Equal(keys, []string{"ns/a", "other/b"}) {
						t.Errorf("the cache has %v", keys)
					}
					if stats := i.Stats().Reflector; stats.DecodeErrors != 2 || stats.Lists[reflector.ListDecode] != 1 {
						t.Errorf("%+v", stats)
					}
					cancel()
					if err := <-done; err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// foreignList is a server whose lists have an object of another namespace, until it is mended.
type foreignList struct {
	*script
	mended bool
}

func (s *foreignList) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	list, err := s.script.List(ctx, opts)
	if !s.mended {
		list.Items = append(list.Items, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "third", Name: "c", ResourceVersion: "1"}})
	}
	return list, err
}

// A list with such an object is none.
func TestListsWithObjectsOfOtherNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := &foreignList{script: newScript()}, newScript()
		i := newInformer("pods", []origin[*corev1.Pod]{{namespace: "ns", source: s}, {namespace: "other", source: other}}, reflector.Options{PagedList: true}, 0)
		s.set("a", 1, nil)
		other.bookmark()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if keys := i.Lister().Keys(); len(keys) > 0 || i.HasSynced() {
			t.Errorf("synced %v with %v", i.HasSynced(), keys)
		}
		s.mu.Lock()
		s.mended = true
		s.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if keys := i.Lister().Keys(); !slices.Equal(keys, []string{"ns/a"}) || !i.HasSynced() {
			t.Errorf("synced %v with %v", i.HasSynced(), keys)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
