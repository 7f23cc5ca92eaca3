package informer

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/internal/deepcopy"
	"github.com/levelwire/levelwire/client/reflector"
)

// interval is between comparisons, and longer than any test: writes to shared
// objects would race with them. The tests call checkAll.
const interval = 24 * time.Hour

// withDetection runs an informer with a handler; found returns the mutations since
// it was called last.
func withDetection(t *testing.T, h Handler[*corev1.Pod], test func(s *script, i *SharedInformer[*corev1.Pod], found func() []Mutation)) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, map[string]string{"app": "web"})
		s.set("b", 2, map[string]string{"app": "web"})
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
		var mu sync.Mutex
		var mutations []Mutation
		must(t, i.SetMutationDetection(MutationDetection{Interval: interval, OnMutation: func(m Mutation) {
			mu.Lock()
			defer mu.Unlock()
			mutations = append(mutations, m)
		}}))
		add(t, i, h, HandlerOptions{Name: "careless"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		test(s, i, func() []Mutation {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			found := mutations
			mutations = nil
			return found
		})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestHandlerThatWritesToAnObjectIsNamed(t *testing.T) {
	careless := HandlerFuncs[*corev1.Pod]{Add: func(pod *corev1.Pod, _ bool) {
		if pod.Name == "a" {
			pod.Labels["app"] = "mine"
		}
	}}
	withDetection(t, careless, func(_ *script, i *SharedInformer[*corev1.Pod], found func() []Mutation) {
		want := Mutation{Informer: "pods", Handler: "careless", Key: "ns/a", Path: "metadata.labels.app"}
		if got := found(); len(got) != 1 || got[0] != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if n := i.Stats().Mutations; n != 1 {
			t.Errorf("%d mutations counted", n)
		}
	})
}

func TestReaderThatWritesToAnObjectIsFound(t *testing.T) {
	withDetection(t, HandlerFuncs[*corev1.Pod]{}, func(s *script, i *SharedInformer[*corev1.Pod], found func() []Mutation) {
		synctest.Wait()
		pod, _ := i.Lister().Copies().Get("ns", "a")
		pod.Status.Phase = corev1.PodFailed
		i.mutations.checkAll()
		if got := found(); len(got) != 0 {
			t.Errorf("a copy was changed, and found: %+v", got)
		}
		pod, _ = i.Lister().Get("ns", "a")
		pod.Status.Phase = corev1.PodFailed
		i.mutations.checkAll()
		want := Mutation{Informer: "pods", Key: "ns/a", Path: "status.phase"}
		if got := found(); len(got) != 1 || got[0] != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		s.set("a", 1, map[string]string{"app": "web"}) // a new state, and the changed one goes
		s.set("b", 1, nil)
		s.remove("b")
		synctest.Wait()
		i.mutations.checkAll()
		if got := found(); len(got) != 0 {
			t.Errorf("nothing was changed, and found: %+v", got)
		}
	})
}

// Most code that writes to a cached object sends it to the server then, and the answer's event
// replaces it before the next comparison.
func TestWritesToObjectsThatWereReplacedAreFound(t *testing.T) {
	for name, replace := range map[string]func(s *script){
		"by a new state": func(s *script) { s.set("a", 1, map[string]string{"app": "mine"}) },
		"by a deletion":  func(s *script) { s.remove("a") },
		"by another object": func(s *script) {
			s.remove("a")
			s.set("a", 3, nil)
		},
	} {
		for _, late := range []bool{false, true} {
			withDetection(t, HandlerFuncs[*corev1.Pod]{}, func(s *script, i *SharedInformer[*corev1.Pod], found func() []Mutation) {
				synctest.Wait()
				pod, _ := i.Lister().Get("ns", "a")
				if !late {
					pod.Labels["app"] = "mine"
				}
				replace(s)
				synctest.Wait()
				if late { // a worker that has read it a while ago
					time.Sleep(time.Minute)
					i.mutations.checkAll()
					pod.Labels["app"] = "mine"
				}
				i.mutations.checkAll()
				want := Mutation{Informer: "pods", Key: "ns/a", Path: "metadata.labels.app"}
				if got := found(); len(got) != 1 || got[0] != want {
					t.Errorf("%s, late %v: got %+v, want %+v", name, late, got, want)
				}
				i.mutations.checkAll()
				if got := found(); len(got) != 0 {
					t.Errorf("%s, late %v: found again: %+v", name, late, got)
				}
			})
		}
	}
}

func TestHandlerThatWritesToOldStatesIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		handler HandlerFuncs[*corev1.Pod]
		change  func(s *script)
	}{
		"the old state of an update": {HandlerFuncs[*corev1.Pod]{Update: func(old, _ *corev1.Pod) { old.Labels["app"] = "mine" }},
			func(s *script) { s.set("a", 1, map[string]string{"app": "web"}) }},
		"a deleted object": {HandlerFuncs[*corev1.Pod]{Delete: func(pod *corev1.Pod, _ bool) { pod.Labels["app"] = "mine" }},
			func(s *script) { s.remove("a") }},
	} {
		withDetection(t, test.handler, func(s *script, _ *SharedInformer[*corev1.Pod], found func() []Mutation) {
			synctest.Wait()
			test.change(s)
			want := Mutation{Informer: "pods", Handler: "careless", Key: "ns/a", Path: "metadata.labels.app"}
			if got := found(); len(got) != 1 || got[0] != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		})
	}
}

func TestListerCopiesCountsAndIterates(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		s.set("a", 1, map[string]string{"app": "web"})
		s.set("b", 2, map[string]string{"app": "db"})
		s.set("c", 3, map[string]string{"app": "web"})
		synctest.Wait()
		web, shared := labels.SelectorFromSet(labels.Set{"app": "web"}), i.Lister()
		for namespace, want := range map[string][2]int{"": {3, 2}, "ns": {3, 2}, "other": {0, 0}} {
			if all, some := shared.Count(namespace, nil), shared.Count(namespace, web); all != want[0] || some != want[1] {
				t.Errorf("namespace %q: %d and %d, want %v", namespace, all, some, want)
			}
			n := 0
			for range shared.All(namespace, web) {
				n++
			}
			if n != want[1] {
				t.Errorf("namespace %q: iterated over %d", namespace, n)
			}
		}
		if n, err := shared.CountByIndex("none", ""); err == nil {
			t.Errorf("an index that does not exist counts %d", n)
		}
		copies := shared.Copies()
		read := []*corev1.Pod{}
		read = append(read, copies.List("", nil)...)
		inNamespace, _ := copies.ByIndex("namespace", "ns")
		same, _ := copies.Index("namespace", read[0])
		one, _ := copies.ByKey("ns/a")
		read = append(append(append(read, inNamespace...), same...), one)
		for pod := range copies.All("", nil) {
			read = append(read, pod)
		}
		if len(read) != 13 {
			t.Errorf("%d objects", len(read))
		}
		for _, pod := range read {
			pod.Labels["app"] = "mine"
		}
		if shared.Count("", web) != 2 {
			t.Error("a copy was shared")
		}
	})
}

// embedding has the DeepCopyObject of what it embeds.
type embedding struct {
	corev1.ConfigMap `json:",inline"`
	Extra            string `json:"extra"`
}

func TestCopyOfATypeThatEmbedsAnother(t *testing.T) {
	obj := &embedding{ConfigMap: corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "web"}}}, Extra: "kept"}
	copied := deepcopy.Of(obj)
	copied.Labels["app"] = "mine"
	if copied.Extra != "kept" || obj.Labels["app"] != "web" {
		t.Errorf("copied %+v of %+v", copied, obj)
	}
}

// Tests, and programs that do one thing, end before the first comparison.
func TestWritesAreFoundAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, map[string]string{"app": "web"})
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
		must(t, i.SetMutationDetection(MutationDetection{Interval: time.Second}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		<-i.Synced()
		pod, _ := i.Lister().Get("ns", "a")
		pod.Labels["app"] = "mine"
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := i.Stats().Mutations; n != 1 {
			t.Errorf("%d mutations were found", n)
		}
	})
}
