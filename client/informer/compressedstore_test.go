package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/reflector"
)

// workload returns a pod as a deployment makes it: equal to others but for names.
func workload(n, version int) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns-" + strconv.Itoa(n%7), Name: fmt.Sprintf("web-5d4f8c7b9-%05d", n), ResourceVersion: strconv.Itoa(version),
		Labels:          map[string]string{"app.kubernetes.io/name": "web", "pod-template-hash": "5d4f8c7b9"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9", Controller: &yes}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/name":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}}}`)}},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "registry.example.com/web:1.2.3", Env: []corev1.EnvVar{{Name: "MODE", Value: "production"}}}}
	pod.Spec.NodeName = "node-" + strconv.Itoa(n%20)
	return pod
}

var byNode = cache.Indexers[*corev1.Pod]{"node": func(pod *corev1.Pod) ([]string, error) {
	if pod.Spec.NodeName == "" {
		return nil, errors.New("no node")
	}
	return []string{pod.Spec.NodeName}, nil
}}

// Whatever is done to it, a store of compressed objects is an Indexer.
func TestCompressedStoreIsAnIndexer(t *testing.T) {
	want := cache.NewIndexer(nil, cache.Indexers[*corev1.Pod]{cache.NamespaceIndex: cache.MetaNamespaceIndex[*corev1.Pod]})
	got, err := newCompressedStore(want.Indexers())
	must(t, err)
	both := []store[*corev1.Pod]{want, got}
	random := rand.New(rand.NewPCG(5, 6))
	for step := range 2000 {
		pod := workload(random.IntN(60), step)
		if random.IntN(9) == 0 {
			pod.Spec.NodeName = ""
		}
		key, _ := want.KeyOf(pod)
		var results [2]string
		for n, s := range both {
			switch {
			case step == 500:
				results[n] = fmt.Sprint(s.AddIndexers(byNode) != nil, s.AddIndexers(byNode) != nil)
			case step%700 == 0:
				results[n] = fmt.Sprint(s.Replace([]*corev1.Pod{workload(1, step), workload(2, step)}) == nil)
			case step%4 == 0:
				old, existed := s.Remove(key)
				results[n] = fmt.Sprint(existed, versionOf(old))
			default:
				old, existed, err := s.Swap(key, pod)
				results[n] = fmt.Sprint(existed, versionOf(old), err)
			}
		}
		if results[0] != results[1] {
			t.Fatalf("step %d: got %s, want %s", step, results[1], results[0])
		}
	}
	sorted := func(objs []*corev1.Pod) []*corev1.Pod {
		slices.SortFunc(objs, func(a, b *corev1.Pod) int {
			return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
		})
		return objs
	}
	if !reflect.DeepEqual(sorted(got.List()), sorted(want.List())) || got.Len() != want.Len() || len(got.Keys()) != len(want.Keys()) {
		t.Error("the lists differ")
	}
	for _, node := range []string{"node-1", "node-2", "none"} {
		a, _ := want.ByIndex("node", node)
		b, err := got.ByIndex("node", node)
		count, _ := got.CountByIndex("node", node)
		visited := 0
		_ = got.RangeIndex("node", node, func(string, *corev1.Pod) bool { visited++; return true })
		if err != nil || len(a)+len(b) > 0 && !reflect.DeepEqual(sorted(a), sorted(b)) || count != len(a) || visited != len(a) {
			t.Errorf("%s: %d objects, count %d, visited %d, want %d", node, len(b), count, visited, len(a))
		}
	}
	some, err := got.ByIndexAny("node", "node-1", "node-2")
	if expected, _ := want.ByIndexAny("node", "node-1", "node-2"); err != nil || !reflect.DeepEqual(sorted(some), sorted(expected)) {
		t.Errorf("%d objects of two nodes, %v, want %d", len(some), err, len(expected))
	}
	for key := range want.Indexers() {
		if got.Indexers()[key] == nil {
			t.Errorf("index function %s is missing", key)
		}
	}
	similar, err := got.Index("node", workload(1, 0))
	if expected, _ := want.Index("node", workload(1, 0)); err != nil || len(similar) != len(expected) {
		t.Errorf("%d objects share a node, %v, want %d", len(similar), err, len(expected))
	}
	if _, err := got.ByIndex("unknown", ""); !errors.Is(err, cache.ErrNoIndex) {
		t.Errorf("an index that does not exist: %v", err)
	}
}

func versionOf(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.ResourceVersion
}

// Objects that are mostly equal take a fraction of their encoding.
func TestCompressedObjectsAreSmall(t *testing.T) {
	s, err := newCompressedStore(cache.Indexers[*corev1.Pod]{})
	must(t, err)
	encodedBytes, kept := 0, 0
	for n := range 1000 {
		pod := workload(n, n)
		encodedBytes += pod.Size()
		_, _, err := s.Swap(pod.Namespace+"/"+pod.Name, pod)
		must(t, err)
	}
	for _, e := range s.indexer.List() {
		kept += len(e.data)
		if e.obj != nil {
			t.Fatal("the object is kept beside its encoding")
		}
	}
	if kept*4 > encodedBytes {
		t.Errorf("%d bytes in place of %d", kept, encodedBytes)
	}
}

func TestReadsOfCompressedObjectsBelongToTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		for n := range 40 {
			s.set(strconv.Itoa(n), n, map[string]string{"app": "web"})
		}
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
		must(t, i.AddIndexers(byNode))
		must(t, i.CompressObjects())
		var r record
		add(t, i, &r, HandlerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		if calls := r.take(); len(calls) != 40 || i.Lister().Len() != 40 {
			t.Errorf("%d calls, %d objects", len(calls), i.Lister().Len())
		}
		pod, _ := i.Lister().Get("ns", "7")
		pod.Labels["app"] = "mine"
		if again, ok := i.Lister().Get("ns", "7"); !ok || again.Labels["app"] != "web" {
			t.Errorf("a read was changed by another reader: %+v", again)
		}
		s.set("7", 7, nil)
		s.remove("8")
		r.expect(t, "*78>41", "-842")
		if i.EstimateBytes() == 0 {
			t.Error("no bytes")
		}
		if err := i.CompressObjects(); err == nil {
			t.Error("accepted after the start")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCompressedObjectsOfOtherForms(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w"}, "spec": map[string]any{"large": int64(1) << 60}}}
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Widget"}, ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	storeAndRead(t, u)
	storeAndRead(t, m)
}

func storeAndRead[T client.Object](t *testing.T, obj T) {
	t.Helper()
	s, err := newCompressedStore(cache.Indexers[T]{})
	must(t, err)
	for n := range 2 * dictionaryObjects {
		if _, _, err := s.Swap(strconv.Itoa(n), obj); err != nil {
			t.Error(err)
		}
	}
	for _, got := range s.List() {
		if !reflect.DeepEqual(got, obj) {
			t.Errorf("got %+v, want %+v", got, obj)
		}
	}
}
