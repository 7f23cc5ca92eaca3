package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/client/cache"
)

// store is what both libraries' indexers can do, with the pods' keys.
type store struct {
	get     func(key string)
	list    func() int
	byIndex func(index, value string) int
	update  func(p *corev1.Pod) error
	remove  func(p *corev1.Pod) error
}

const nodeIndex = "node"

func ourStore() store {
	x := cache.NewIndexer(nil, cache.Indexers[*corev1.Pod]{
		cache.NamespaceIndex: cache.MetaNamespaceIndex[*corev1.Pod],
		nodeIndex:            func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
	})
	return store{
		get:  func(key string) { x.Get(key) },
		list: func() int { return len(x.List()) },
		byIndex: func(index, value string) int {
			found, _ := x.ByIndex(index, value)
			return len(found)
		},
		update: x.Update, remove: x.Delete,
	}
}

func theirStore() store {
	x := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		nodeIndex:                 func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil },
	})
	return store{
		get:  func(key string) { _, _, _ = x.GetByKey(key) },
		list: func() int { return len(x.List()) },
		byIndex: func(index, value string) int {
			found, _ := x.ByIndex(index, value)
			return len(found)
		},
		update: func(p *corev1.Pod) error { return x.Update(p) },
		remove: func(p *corev1.Pod) error { return x.Delete(p) },
	}
}

// small is a pod with only what the indexes look at.
func small(i int) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.Spec.NodeName = workload.Namespace(i), workload.Name(i), workload.Node(i)
	return p
}

// measureIndexer is what reads and writes of a cache cost.
func measureIndexer(_ context.Context, t task) (result, error) {
	s := ourStore()
	if t.Library == clientGo {
		s = theirStore()
	}
	pods, keys := make([]*corev1.Pod, t.Count), make([]string, t.Count)
	for i := range pods {
		pods[i] = small(i)
		keys[i] = pods[i].Namespace + "/" + pods[i].Name
	}
	m, err := start("")
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		if err := s.update(p); err != nil {
			return nil, err
		}
	}
	u, err := m.stop()
	if err != nil {
		return nil, err
	}
	if n := s.byIndex(nodeIndex, workload.Node(0)); n == 0 || s.list() != len(pods) {
		return nil, fmt.Errorf("%s has %d pods of a node and %d in all", t.Library, n, s.list())
	}
	r := result{"Add ns": float64(u.processor.Nanoseconds()) / float64(t.Count), "live bytes per object": m.live() / float64(t.Count)}
	return r, s.operations(r, pods, keys)
}

// operations measures each operation on a full store: what it costs in
// processor time, so that a busy machine does not matter, and for several
// goroutines how long it takes.
func (s store) operations(r result, pods []*corev1.Pod, keys []string) error {
	n := len(pods)
	var failed error
	measure := func(name string, f func(i int)) {
		if r[name], failed = processorTimeOf(func(i int) { f(i * 7919 % n) }); failed != nil {
			return
		}
	}
	inParallel := func(name string, f func(i int)) {
		done := testing.Benchmark(func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(n); pb.Next(); i++ {
					f(i)
				}
			})
		})
		r[name] = float64(done.T.Nanoseconds()) / float64(done.N)
	}
	measure("Get ns", func(i int) { s.get(keys[i]) })
	measure("List ns", func(int) { s.list() })
	measure("ByIndex (node) ns", func(i int) { s.byIndex(nodeIndex, pods[i].Spec.NodeName) })
	measure("ByIndex (namespace) ns", func(i int) { s.byIndex(cache.NamespaceIndex, pods[i].Namespace) })
	measure("Update ns", func(i int) { _ = s.update(pods[i]) })
	measure("Delete and Add ns", func(i int) { _, _ = s.remove(pods[i]), s.update(pods[i]) })
	inParallel("parallel Get, wall ns", func(i int) { s.get(keys[i*7919%n]) })
	inParallel("parallel, 1 of 10 writes, wall ns", func(i int) {
		if i%10 == 0 {
			_ = s.update(pods[i*7919%n])
		} else {
			s.get(keys[i*7919%n])
		}
	})
	return failed
}

// processorTimeOf returns the nanoseconds that one call takes on average.
func processorTimeOf(f func(i int)) (float64, error) {
	const enough = 500 * time.Millisecond
	collect()
	begun, err := measure.OwnCPU()
	for calls, more := 0, 1; err == nil; more *= 2 {
		for range more {
			f(calls)
			calls++
		}
		var now time.Duration
		if now, err = measure.OwnCPU(); now-begun > enough {
			return float64((now - begun).Nanoseconds()) / float64(calls), err
		}
	}
	return 0, err
}
