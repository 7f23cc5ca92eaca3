package informer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/reflector"
)

// send has the server send an event with a version of its own.
func (s *script) send(kind watch.EventType, name, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "1", ResourceVersion: version}}
	s.events = append(s.events, client.WatchEvent[*corev1.Pod]{Type: kind, Object: pod})
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// TestDeletionsFromThePast: the cache and handlers lose an object whose deletion carries
// the version of its last change.
func TestDeletionsFromThePast(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var r record
		add(t, i, &r, HandlerOptions{})
		s.bookmark()
		s.set("a", 1, nil)
		s.set("b", 1, nil)
		r.expect(t, "+a2", "+b3")
		s.send(watch.Deleted, "a", "2")
		r.expect(t, "-a2")
		s.send(watch.Deleted, "a", "2") // it is gone
		s.send(watch.Deleted, "b", "2") // its state before the last one
		r.expect(t)
	})
}

// The state of an object is that to which the DeltaFIFO leads, not that of the cache.
func TestDeletionsFromThePastOfWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		var r record
		add(t, i, &r, HandlerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		applied, hold := make(chan struct{}), make(chan struct{})
		must(t, i.AddIndexers(cache.Indexers[*corev1.Pod]{"gate": func(pod *corev1.Pod) ([]string, error) {
			if pod.Name == "gate" {
				close(applied)
				<-hold // the loop is at this object, and the queue grows
			}
			return nil, nil
		}}))
		s.set("a", 1, nil)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait() // the watch is open: what opens it and the loop share a lock
		s.set("gate", 1, nil)
		<-applied
		s.send(watch.Added, "c", "7")
		s.send(watch.Added, "d", "8")
		s.send(watch.Deleted, "c", "7")
		s.send(watch.Deleted, "d", "7")
		synctest.Wait()
		close(hold)
		r.expect(t, "+a1!", "+gate2", "+c7", "-c7", "+d8")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestEventsOfWhatAListLacks: an event from before a list does not bring back what that lacks,
// whether a list is of everything or of one namespace of several.
func TestEventsOfWhatAListLacks(t *testing.T) {
	for name, namespaces := range map[string][]string{"everything": {""}, "two namespaces": {"ns", "other"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scripts, origins := map[string]*script{}, []origin[*corev1.Pod]{}
				for _, namespace := range namespaces {
					scripts[namespace] = newScript()
					origins = append(origins, origin[*corev1.Pod]{namespace: namespace, source: scripts[namespace]})
				}
				s, other := scripts[namespaces[0]], scripts[namespaces[len(namespaces)-1]]
				i := newInformer("pods", origins, reflector.Options{PagedList: true}, 0)
				var r record
				add(t, i, &r, HandlerOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- i.Run(ctx) }()
				other.bookmark()
				s.bookmark()
				s.set("a", 1, nil)
				synctest.Wait()
				r.take()
				s.setDown(true)
				s.endWatches()
				s.remove("a")
				s.forget()
				s.bookmark()
				s.setDown(false)
				time.Sleep(time.Minute)
				synctest.Wait()
				if said := r.take(); len(said) != 1 || said[0][:2] != "-a" {
					t.Errorf("the list was followed by %v", said)
				}
				s.send(watch.Modified, "a", "2")
				s.send(watch.Added, "a", "3")
				r.expect(t)
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLateEventsBesideACorrection: a consistency check corrects an object between the reflector's look at it and
// its write, for which the transform stands. An event from before that does not set the object back.
func TestLateEventsBesideACorrection(t *testing.T) {
	for name, test := range map[string]struct {
		kind    watch.EventType
		correct func(i *SharedInformer[*corev1.Pod]) error
		calls   []string
		held    string // "": none
	}{
		"a later state": {watch.Modified, func(i *SharedInformer[*corev1.Pod]) error {
			return i.fifo.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "6"}})
		}, []string{"*a3>6"}, "6"},
		"an earlier one": {watch.Modified, func(i *SharedInformer[*corev1.Pod]) error {
			return i.fifo.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "4"}})
		}, []string{"*a3>5"}, "5"},
		"nothing": {watch.Modified, func(*SharedInformer[*corev1.Pod]) error { return nil }, []string{"*a3>5"}, "5"},
		"the end": {watch.Modified, func(i *SharedInformer[*corev1.Pod]) error {
			last, _ := i.indexer.Get("ns/a")
			i.absent(last, "7")
			_, err := i.fifo.QueueTombstone("ns/a")
			return err
		}, []string{"-a3?"}, ""},
		"a later state, and the event is an end": {watch.Deleted, func(i *SharedInformer[*corev1.Pod]) error {
			return i.fifo.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "6"}})
		}, []string{"*a3>6"}, "6"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := newScript(), &record{}
				i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true, SilenceTimeout: -1})
				must(t, i.SetConsistencyCheck(ConsistencyCheckOptions[*corev1.Pod]{Interval: time.Hour, List: s.digest, Get: s.get}))
				must(t, i.SetTransform(func(pod *corev1.Pod) (*corev1.Pod, error) {
					if pod.ResourceVersion == "5" {
						if done, err := i.consistencyChecker.untouched("ns/a", func() error { return test.correct(i) }); !done || err != nil {
							t.Errorf("corrected: %v, %v", done, err)
						}
					}
					return pod, nil
				}))
				add(t, i, r, HandlerOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- i.Run(ctx) }()
				synctest.Wait()
				s.bookmark()
				s.send(watch.Added, "a", "3")
				s.send(watch.Added, "b", "10")
				r.expect(t, "+a3", "+b10")
				i.consistencyChecker.watchKeys() // a round begins
				s.send(test.kind, "a", "5")
				r.expect(t, test.calls...)
				if pod, ok := i.Lister().Get("ns", "a"); ok != (test.held != "") || ok && pod.ResourceVersion != test.held {
					t.Errorf("it is in the cache: %v, want %q", ok, test.held)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
