package informer

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// digest is the metadata of all pods of the script.
func (s *script) digest(context.Context, metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &client.List[*metav1.PartialObjectMetadata]{}
	list.ResourceVersion = strconv.Itoa(s.version)
	for _, pod := range s.pods {
		list.Items = append(list.Items, &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta})
	}
	return list, nil
}

func (s *script) get(_ context.Context, _, name string) (*corev1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod, ok := s.pods[name]; ok {
		return pod, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
}

// repairing runs a test with an informer of pods a, b and c that compares once
// an hour.
func repairing(t *testing.T, change func(s *script, o *ConsistencyCheckOptions[*corev1.Pod]), test func(s *script, i *SharedInformer[*corev1.Pod], r *record)) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newScript(), &record{}
		for n, name := range []string{"a", "b", "c"} {
			s.set(name, n+1, nil)
		}
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true, SilenceTimeout: -1})
		opts := ConsistencyCheckOptions[*corev1.Pod]{Interval: time.Hour, List: s.digest, Get: s.get}
		if change != nil {
			change(s, &opts)
		}
		if err := i.SetConsistencyCheck(opts); err != nil {
			t.Fatal(err)
		}
		add(t, i, r, HandlerOptions{})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		r.expectUnordered(t, "+a1!", "+b2!", "+c3!")
		test(s, i, r)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// diverge makes the cache wrong in every way: a has an old state, b is
// missing, and x does not exist.
func diverge(t *testing.T, i *SharedInformer[*corev1.Pod]) {
	t.Helper()
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "0"}}
	extra := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "9", ResourceVersion: "2"}}
	_, _, oldErr := i.indexer.Swap("ns/"+old.Name, old)
	_, _, extraErr := i.indexer.Swap("ns/"+extra.Name, extra)
	if err := errors.Join(oldErr, extraErr); err != nil {
		t.Fatal(err)
	}
	i.indexer.Remove("ns/b")
}

func TestDivergedCopyIsMendedAndHandlersHearOfIt(t *testing.T) {
	repairing(t, nil, func(_ *script, i *SharedInformer[*corev1.Pod], r *record) {
		diverge(t, i)
		time.Sleep(2 * time.Hour)
		r.expectUnordered(t, "*a0>1", "+b2", "-x2?")
		if s := i.Stats().ConsistencyCheck; s.Rounds == 0 || s.Changed != 1 || s.Missing != 1 || s.Extra != 1 || s.Abandoned != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(2 * time.Hour)
		r.expect(t) // nothing is left to correct
	})
}

func TestRepairLeavesObjectsWithEventsToTheirEvents(t *testing.T) {
	change := func(s *script, o *ConsistencyCheckOptions[*corev1.Pod]) {
		// While the digest travels, everything that differs changes.
		o.List = func(ctx context.Context, opts metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
			list, err := s.digest(ctx, opts)
			s.set("a", 1, nil)
			s.remove("b")
			s.set("x", 9, nil)
			time.Sleep(time.Second) // the events are faster
			return list, err
		}
	}
	repairing(t, change, func(s *script, i *SharedInformer[*corev1.Pod], r *record) {
		diverge(t, i)
		time.Sleep(80 * time.Minute)
		synctest.Wait()
		if got := i.Stats().ConsistencyCheck; got.Rounds != 1 || got.Changed+got.Missing+got.Extra != 0 {
			t.Errorf("%+v", got)
		}
		// The event of b's deletion led to no call: the cache did not have b.
		r.expectUnordered(t, "*a0>4", "*x2>6")
	})
}

func TestRepairIsAbandonedWhenTheServerFails(t *testing.T) {
	change := func(_ *script, o *ConsistencyCheckOptions[*corev1.Pod]) {
		o.List = func(context.Context, metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
			return nil, errors.New("no")
		}
	}
	repairing(t, change, func(_ *script, i *SharedInformer[*corev1.Pod], r *record) {
		diverge(t, i)
		time.Sleep(90 * time.Minute)
		r.expect(t)
		if s := i.Stats().ConsistencyCheck; s.Rounds != 0 || s.Abandoned != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestRepairIsAbandonedWhenItsFunctionsPanic(t *testing.T) {
	for name, change := range map[string]func(*script, *ConsistencyCheckOptions[*corev1.Pod]){
		"List": func(_ *script, o *ConsistencyCheckOptions[*corev1.Pod]) {
			o.List = func(context.Context, metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
				panic("no")
			}
		},
		"Get": func(_ *script, o *ConsistencyCheckOptions[*corev1.Pod]) {
			o.Get = func(context.Context, string, string) (*corev1.Pod, error) { panic("no") }
		},
		"List, returning nil": func(_ *script, o *ConsistencyCheckOptions[*corev1.Pod]) {
			o.List = func(context.Context, metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
				return nil, nil
			}
		},
		"Get, returning nil": func(_ *script, o *ConsistencyCheckOptions[*corev1.Pod]) {
			o.Get = func(context.Context, string, string) (*corev1.Pod, error) { return nil, nil }
		},
		"Get, returning another object": func(s *script, o *ConsistencyCheckOptions[*corev1.Pod]) {
			o.Get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
				pod, err := s.get(ctx, namespace, name)
				pod = pod.DeepCopy()
				pod.Name = "other"
				return pod, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			repairing(t, change, func(_ *script, i *SharedInformer[*corev1.Pod], _ *record) {
				diverge(t, i)
				time.Sleep(90 * time.Minute)
				if s := i.Stats().ConsistencyCheck; s.Rounds != 0 || s.Abandoned != 1 {
					t.Errorf("%+v", s)
				}
				if _, there := i.Lister().Get("ns", "other"); there {
					t.Error("the cache has an object that nobody asked for")
				}
			})
		})
	}
}

func TestRepairOptionsAreChecked(t *testing.T) {
	s := newScript()
	for want, opts := range map[string]ConsistencyCheckOptions[*corev1.Pod]{
		"interval": {Interval: time.Millisecond, List: s.digest, Get: s.get},
		"List":     {Interval: time.Hour, Get: s.get},
		"Get":      {Interval: time.Hour, List: s.digest},
	} {
		i := New[*corev1.Pod]("pods", s, reflector.Options{})
		if err := i.SetConsistencyCheck(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// differing is a script that answers the question for a difference with what the
// test says.
type differing struct {
	*script
	answer func(held []*corev1.Pod) *client.Difference[*corev1.Pod]
}

func (d *differing) Difference(_ context.Context, held []*corev1.Pod, _ metav1.ListOptions) (*client.Difference[*corev1.Pod], error) {
	return d.answer(held), nil
}

// TestRepairWaitsForADifference: an object that a comparison would add, while
// the server thinks about what was held before, might be gone in its answer, and
// nothing would take it away again.
func TestRepairWaitsForADifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newScript(), &record{}
		s.set("lost", 1, nil)
		s.set("kept", 2, nil)
		source := &differing{script: s, answer: func(held []*corev1.Pod) *client.Difference[*corev1.Pod] {
			time.Sleep(time.Minute) // rounds of comparison go by
			s.remove("lost")
			return &client.Difference[*corev1.Pod]{ResourceVersion: strconv.Itoa(s.version), Kept: held}
		}}
		i := New[*corev1.Pod]("pods", source, reflector.Options{PagedList: true})
		if err := i.SetConsistencyCheck(ConsistencyCheckOptions[*corev1.Pod]{Interval: 10 * time.Second, List: s.digest, Get: s.get}); err != nil {
			t.Fatal(err)
		}
		add(t, i, r, HandlerOptions{})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		r.expectUnordered(t, "+lost1!", "+kept2!")
		i.indexer.Remove("ns/lost")
		s.forget()
		s.mu.Lock()
		s.expired++ // the version that the informer has, too
		s.mu.Unlock()
		time.Sleep(2 * time.Minute)
		r.expect(t)
		if keys := i.indexer.Keys(); len(keys) != 1 || i.Stats().Reflector.Differences[reflector.DifferenceApplied] != 1 {
			t.Errorf("the copy has %v, %+v", keys, i.Stats().Reflector)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestEventsOfWhatAConsistencyCheckDropped: an event from before the comparison does not bring back
// the object that the server lacked.
func TestEventsOfWhatAConsistencyCheckDropped(t *testing.T) {
	repairing(t, nil, func(s *script, i *SharedInformer[*corev1.Pod], r *record) {
		s.bookmark()
		extra := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "1", ResourceVersion: "2"}}
		if _, _, err := i.indexer.Swap("ns/x", extra); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		r.expect(t, "-x2?")
		s.send(watch.Modified, "x", "3")
		s.send(watch.Added, "x", "2")
		r.expect(t)
		s.send(watch.Added, "x", "90") // it matches the selector again
		r.expect(t, "+x90")
	})
}

// TestConsistencyCheckDropsInParts: one round holds so many keys of objects that the server lacks, and
// the next follows at once.
func TestConsistencyCheckDropsInParts(t *testing.T) {
	repairing(t, nil, func(_ *script, i *SharedInformer[*corev1.Pod], r *record) {
		const extra = 2*maxCorrections + maxCorrections/2
		for n := range extra {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x" + strconv.Itoa(n), ResourceVersion: "2"}}
			if _, _, err := i.indexer.Swap("ns/"+pod.Name, pod); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if got := i.Stats().ConsistencyCheck; got.Rounds != 3 || got.Extra != extra || got.Abandoned != 0 {
			t.Errorf("%+v", got)
		}
		if said := r.take(); len(said) != extra || i.indexer.Len() != 3 {
			t.Errorf("%d calls, %d objects are left", len(said), i.indexer.Len())
		}
	})
}
