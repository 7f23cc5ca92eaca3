package informer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/reflector"
)

// A transform that cannot be called for an object costs nothing but that: the object is
// stored as it came, and the others are transformed.
func TestTransformThatFailsLosesNoObject(t *testing.T) {
	for name, test := range map[string]struct {
		transform func(*corev1.Pod) (*corev1.Pod, error)
		logged    string
	}{
		"it panics":                    {func(*corev1.Pod) (*corev1.Pod, error) { panic("odd labels") }, "odd labels"},
		"it panics with nil pointers":  {func(p *corev1.Pod) (*corev1.Pod, error) { p.Spec.Containers[0].Name = ""; return p, nil }, "index out of range"},
		"it returns nil":               {func(*corev1.Pod) (*corev1.Pod, error) { return nil, nil }, "returned nil"},
		"it returns an empty object":   {func(*corev1.Pod) (*corev1.Pod, error) { return &corev1.Pod{}, nil }, "another name"},
		"it renames the object":        {func(p *corev1.Pod) (*corev1.Pod, error) { p.Name = "other"; return p, nil }, "another name"},
		"it takes away the namespace":  {func(p *corev1.Pod) (*corev1.Pod, error) { p.Namespace = ""; return p, nil }, "another name"},
		"it empties the object":        {func(p *corev1.Pod) (*corev1.Pod, error) { *p = corev1.Pod{}; return p, nil }, "another name"},
		"it empties it and fails":      {func(p *corev1.Pod) (*corev1.Pod, error) { *p = corev1.Pod{}; return nil, errors.New("not this") }, "not this"},
		"it empties it and panics":     {func(p *corev1.Pod) (*corev1.Pod, error) { *p = corev1.Pod{}; panic("half done") }, "half done"},
		"it panics after it has begun": {func(p *corev1.Pod) (*corev1.Pod, error) { p.Name = ""; panic("half done") }, "half done"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := newScript()
				s.set("listed", 1, map[string]string{"odd": "yes"})
				s.set("other", 2, nil)
				i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
				i.log = slog.New(slog.NewTextHandler(&log, nil))
				if err := i.SetTransform(func(pod *corev1.Pod) (*corev1.Pod, error) {
					if pod.Labels["odd"] != "" {
						return test.transform(pod) // which may write to it
					}
					pod = pod.DeepCopy()
					pod.Labels = map[string]string{"transformed": "yes"}
					return pod, nil
				}); err != nil {
					t.Fatal(err)
				}
				var r record
				add(t, i, &r, HandlerOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- i.Run(ctx) }()
				r.expect(t, "+listed1!", "+other2!")
				s.set("watched", 3, map[string]string{"odd": "yes"})
				s.set("listed", 1, map[string]string{"odd": "still"})
				r.expect(t, "+watched3", "*listed1>4")
				s.remove("watched")
				s.forget() // and lists again
				s.set("later", 4, map[string]string{"odd": "yes"})
				time.Sleep(time.Minute)
				synctest.Wait()
				if other, ok := i.Lister().Get("ns", "other"); !ok || other.Labels["transformed"] != "yes" {
					t.Errorf("another object: %v %v", ok, other)
				}
				if got := i.Stats().Untransformed; got < 4 || !strings.Contains(log.String(), test.logged) {
					t.Errorf("%d counted, logged %s", got, log.String())
				}
				s.remove("listed")
				synctest.Wait()
				if keys := strings.Join(i.Lister().Keys(), " "); i.Lister().Len() != 2 || !strings.Contains(keys, "ns/later") {
					t.Errorf("the cache has %s", keys)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Whatever the type, an object that a transform has ruined is stored as it came.
func TestTransformThatRuinsAnObjectChangesNothing(t *testing.T) {
	keepsObject(t, &corev1.Pod{}, func(p *corev1.Pod) { *p = corev1.Pod{} })
	keepsObject(t, &metav1.PartialObjectMetadata{}, func(m *metav1.PartialObjectMetadata) { *m = metav1.PartialObjectMetadata{} })
	keepsObject(t, &unstructured.Unstructured{}, func(u *unstructured.Unstructured) { u.Object = nil })
	keepsObject(t, &unstructured.Unstructured{}, func(u *unstructured.Unstructured) { u.Object = map[string]any{} })
	keepsObject(t, &unstructured.Unstructured{}, func(u *unstructured.Unstructured) { u.Object["metadata"] = "odd" })
	keepsObject(t, &unstructured.Unstructured{}, func(u *unstructured.Unstructured) { u.Object["metadata"] = nil })
}

func keepsObject[T client.Object](t *testing.T, obj T, ruin func(T)) {
	t.Helper()
	for _, namespace := range []string{"ns", ""} {
		obj := obj.DeepCopyObject().(T)
		if u, ok := client.Object(obj).(*unstructured.Unstructured); ok {
			u.Object = map[string]any{"spec": map[string]any{"size": int64(3)}}
		}
		obj.SetNamespace(namespace)
		obj.SetName("a")
		obj.SetUID("1")
		obj.SetResourceVersion("7")
		obj.SetLabels(map[string]string{"app": "web"})
		i := newInformer[T]("objects", nil, reflector.Options{Logger: slog.New(slog.DiscardHandler)}, 0)
		must(t, i.SetTransform(func(obj T) (T, error) { ruin(obj); return obj, errors.New("half done") }))
		for n := range int64(2) {
			got := i.transformed(obj.DeepCopyObject().(T))
			if !equality.Semantic.DeepEqual(got, obj) || i.Stats().Untransformed != n+1 {
				t.Errorf("%T is stored as %v, %d counted", obj, got, i.Stats().Untransformed)
			}
		}
	}
}

// A transform that fails after it has changed a part of the object: the cache has what the
// server has sent, and not a state that never was.
func TestTransformThatFailsHalfWay(t *testing.T) {
	half := func(pod *corev1.Pod) (*corev1.Pod, error) {
		before := pod.Labels["odd"]
		pod.Labels["odd"] = "overwritten"
		if before != "" {
			return nil, errors.New("half done")
		}
		return pod, nil
	}
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("listed", 1, map[string]string{"odd": "yes"})
		s.set("other", 2, map[string]string{"odd": ""})
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		must(t, i.SetTransform(half))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		s.set("watched", 3, map[string]string{"odd": "yes"})
		s.set("listed", 4, map[string]string{"odd": "still"})
		synctest.Wait()
		for name, want := range map[string]string{"listed": "still", "watched": "yes", "other": "overwritten"} {
			if pod, ok := i.Lister().Get("ns", name); !ok || pod.Labels["odd"] != want {
				t.Errorf("%s: %v %v", name, ok, pod)
			}
		}
		if got := i.Stats().Untransformed; got != 3 {
			t.Errorf("%d counted", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Failures of one object are logged seldom, and of many objects as of one.
func TestFailuresAreLoggedSeldom(t *testing.T) {
	var log bytes.Buffer
	var f failures
	warn := func(key string) {
		f.warn(slog.New(slog.NewTextHandler(&log, nil)), "object is stored as it came", key, errors.New("odd"))
	}
	lines := func() int { defer log.Reset(); return strings.Count(log.String(), "\n") }
	for range 12_345 {
		warn("a")
	}
	if text := log.String(); !strings.Contains(text, "failures=10000") {
		t.Errorf("logged %s", text)
	}
	if n := lines(); n != 5 { // 1, 10, 100, 1,000, 10,000
		t.Errorf("%d lines about one object", n)
	}
	for n := range 12_345 {
		warn(fmt.Sprint("b", n))
	}
	if n := lines(); n != maxFailures-1+5 {
		t.Errorf("%d lines about many objects", n)
	}
	f.forget("a")
	warn("a")
	if n := lines(); n != 1 || len(f.count) > maxFailures {
		t.Errorf("%d lines about an object that was made again, %d counts", n, len(f.count))
	}
	f.warn(slog.New(slog.NewTextHandler(&log, nil)), "object is not in all indexes", "a", errors.New("odd"))
	if n := lines(); n != 1 {
		t.Errorf("%d lines about another failure of an object", n)
	}
}

// An index function that panics costs its index the object, whatever the objects are stored in.
func TestPanickingIndexFunctionLosesNoObject(t *testing.T) {
	for name, compressed := range map[string]bool{"objects": false, "compressed objects": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.set("listed", 1, map[string]string{"odd": "yes"})
				s.set("other", 2, nil)
				i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
				if compressed {
					must(t, i.CompressObjects())
				}
				byOdd := func(pod *corev1.Pod) ([]string, error) {
					if pod.Labels["odd"] != "" {
						panic("odd")
					}
					return []string{"even"}, nil
				}
				must(t, i.AddIndexers(cache.Indexers[*corev1.Pod]{"before": byOdd}))
				var r record
				add(t, i, &r, HandlerOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- i.Run(ctx) }()
				r.expect(t, "+listed1!", "+other2!")
				s.set("watched", 3, map[string]string{"odd": "yes"})
				r.expect(t, "+watched3")
				if got := i.Stats().Unindexed; got != 2 {
					t.Errorf("%d counted", got)
				}
				if err := i.AddIndexers(cache.Indexers[*corev1.Pod]{"after": byOdd}); err == nil || !strings.Contains(err.Error(), "panicked: odd") {
					t.Errorf("an index of a cache that runs: error %v", err)
				}
				for _, index := range []string{"before", "after"} {
					if even, err := i.Lister().ByIndex(index, "even"); err != nil || len(even) != 1 || even[0].Name != "other" {
						t.Errorf("index %s: %v, %v", index, even, err)
					}
				}
				if i.Lister().Len() != 3 {
					t.Errorf("the cache has %v", i.Lister().Keys())
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// painted embeds a type of the API, whose DeepCopyObject is not one of its own.
type painted struct {
	corev1.ConfigMap
	Color string `json:"color"`
}

// uncopied cannot be copied.
type uncopied struct{ corev1.ConfigMap }

func (*uncopied) DeepCopyObject() runtime.Object { panic("no copy") }

// The copy that a transform gets is one of the object's own type. An object that cannot be copied is stored as it
// came, and not compared with what it was.
func TestTransformOfTypesThatAreCopiedInAnotherWay(t *testing.T) {
	p := &painted{ConfigMap: corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, Color: "red"}
	i := newInformer[*painted]("painted", nil, reflector.Options{Logger: slog.New(slog.DiscardHandler)}, 0)
	must(t, i.SetTransform(func(p *painted) (*painted, error) { p.Color = "blue"; return p, nil }))
	if got := i.transformed(p); got.Color != "blue" || got.Name != "a" || p.Color != "red" || i.Stats().Untransformed != 0 {
		t.Errorf("%+v is stored in place of %+v", got, p)
	}
	var log bytes.Buffer
	u := &uncopied{corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}}
	bad := newInformer[*uncopied]("uncopied", nil, reflector.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, 0)
	must(t, bad.SetTransform(func(*uncopied) (*uncopied, error) { return nil, errors.New("it is called") }))
	must(t, bad.SetMutationDetection(MutationDetection{Interval: interval}))
	bad.mutations.stored("ns/a", u)
	bad.mutations.removed("ns/a", u)
	bad.mutations.checkAll()
	if got := bad.transformed(u); got != u || bad.Stats().Untransformed != 1 || bad.mutations.panics.Count() != 2 {
		t.Errorf("%+v is stored, %+v, %d panics", got, bad.Stats(), bad.mutations.panics.Count())
	}
	if said := log.String(); strings.Count(said, "no copy") != 2 || strings.Contains(said, "it is called") {
		t.Errorf("logged %s", said)
	}
}
