package informer

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// sendTwin has the server send an event of an object with another UID.
func (s *script) sendTwin(kind watch.EventType, name, version string, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, ResourceVersion: version}}
	s.events = append(s.events, client.WatchEvent[*corev1.Pod]{Type: kind, Object: pod})
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// An event that shows the version that the cache has is no update for handlers, with and
// without MaxUnmergedEvents.
func TestEventsThatAreRepeated(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		handlers := []*record{{}, {}}
		add(t, i, handlers[0], HandlerOptions{})
		add(t, i, handlers[1], HandlerOptions{MaxUnmergedEvents: 100})
		s.bookmark()
		expect := func(want string) {
			t.Helper()
			for _, r := range handlers {
				r.expect(t, strings.Fields(want)...)
			}
		}
		s.set("a", 1, nil)
		expect("+a2")
		for range 2 {
			s.send(watch.Modified, "a", "2")
			s.send(watch.Added, "a", "2")
		}
		expect("")
		s.send(watch.Modified, "a", "5")
		s.send(watch.Modified, "a", "5")
		expect("*a2>5")
		s.sendTwin(watch.Added, "a", "5", "2") // another object, whatever its version
		expect("-a5? +a5")
		s.send(watch.Deleted, "a", "6")
		s.send(watch.Added, "a", "6")
		expect("-a6 +a6")
		s.bookmark()
		synctest.Wait()
		if pod, ok := i.Lister().Get("ns", "a"); !ok || pod.ResourceVersion != "6" {
			t.Errorf("the cache has %v", pod)
		}
	})
}
