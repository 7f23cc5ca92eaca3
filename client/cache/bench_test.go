package cache

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	many         = 200_000 // objects
	perNamespace = 200
	perNode      = 2000
)

// filled has many pods, indexed by namespace and by node.
func filled(b *testing.B) (*Indexer[*corev1.Pod], []*corev1.Pod) {
	b.Helper()
	pods := make([]*corev1.Pod, many)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "namespace-" + strconv.Itoa(i/perNamespace), Name: "pod-" + strconv.Itoa(i), ResourceVersion: "1",
		}}
		pods[i].Spec.NodeName = "node-" + strconv.Itoa(i%(many/perNode))
	}
	x := NewIndexer(nil, Indexers[*corev1.Pod]{
		NamespaceIndex: MetaNamespaceIndex[*corev1.Pod],
		"node":         func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
	})
	if err := x.Replace(pods); err != nil {
		b.Fatal(err)
	}
	return x, pods
}

func BenchmarkIndexer(b *testing.B) {
	x, pods := filled(b)
	keys := x.Keys()
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			x.Get(keys[i*7919%many])
		}
	})
	b.Run("List", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.List()
		}
	})
	for index, value := range map[string]string{NamespaceIndex: "namespace-7", "node": "node-7"} {
		objs, err := x.ByIndex(index, value)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint("ByIndex/", len(objs)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = x.ByIndex(index, value)
			}
		})
	}
	b.Run("Update", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = x.Update(pods[i*7919%many])
		}
	})
	b.Run("Replace", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = x.Replace(pods)
		}
	})
}

// BenchmarkDeltaFIFO is one change that is queued and taken: of one object
// over and over, and of each of many in turn with others waiting.
func BenchmarkDeltaFIFO(b *testing.B) {
	x, pods := filled(b)
	process := func(Item[*corev1.Pod]) error { return nil }
	for _, waiting := range []int{0, 1000} {
		b.Run(fmt.Sprint("UpdatePop/waiting=", waiting), func(b *testing.B) {
			f := NewDeltaFIFO(FIFOOptions[*corev1.Pod]{Known: x})
			for i := range waiting {
				_ = f.Update(pods[i])
			}
			b.ReportAllocs()
			for i := waiting; b.Loop(); i++ {
				_ = f.Update(pods[i%many])
				_ = f.Pop(b.Context(), process)
			}
		})
	}
	b.Run("UpdateQueued", func(b *testing.B) {
		f := NewDeltaFIFO(FIFOOptions[*corev1.Pod]{Known: x})
		b.ReportAllocs()
		for b.Loop() {
			_ = f.Update(pods[0])
		}
	})
	b.Run("ReplaceAndDrain", func(b *testing.B) {
		f := NewDeltaFIFO(FIFOOptions[*corev1.Pod]{Known: x})
		b.ReportAllocs()
		for b.Loop() {
			_ = f.Replace(pods, "2")
			for f.Len() > 0 {
				_ = f.Pop(b.Context(), process)
			}
		}
	})
}
