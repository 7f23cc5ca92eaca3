package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

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
	p.Namespace, p.Name, p.Spec.NodeName = namespaceOf(i), podName(i), nodeOf(i)
	return p
}

// measureIndexer is what reads and writes of a local copy cost.
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
	if n := s.byIndex(nodeIndex, nodeOf(0)); n == 0 || s.list() != len(pods) {
		return nil, fmt.Errorf("%s has %d pods of a node and %d in all", t.Library, n, s.list())
	}
	r := result{"Add ns": float64(u.wall.Nanoseconds()) / float64(t.Count), "live bytes per object": m.live() / float64(t.Count)}
	s.operations(r, pods, keys)
	return r, nil
}

// operations measures each operation on a full store.
func (s store) operations(r result, pods []*corev1.Pod, keys []string) {
	n := len(pods)
	measure := func(name string, f func(b *testing.B)) {
		done := testing.Benchmark(f)
		r[name] = float64(done.T.Nanoseconds()) / float64(done.N)
	}
	each := func(f func(i int)) func(b *testing.B) {
		return func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				f(i * 7919 % n)
			}
		}
	}
	measure("Get ns", each(func(i int) { s.get(keys[i]) }))
	measure("List ns", each(func(int) { s.list() }))
	measure("ByIndex (node) ns", each(func(i int) { s.byIndex(nodeIndex, pods[i].Spec.NodeName) }))
	measure("ByIndex (namespace) ns", each(func(i int) { s.byIndex(cache.NamespaceIndex, pods[i].Namespace) }))
	measure("Update ns", each(func(i int) { _ = s.update(pods[i]) }))
	measure("Delete and Add ns", each(func(i int) { _, _ = s.remove(pods[i]), s.update(pods[i]) }))
	measure("parallel Get ns", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.IntN(n); pb.Next(); i++ {
				s.get(keys[i*7919%n])
			}
		})
	})
	measure("parallel, 1 of 10 writes, ns", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.IntN(n); pb.Next(); i++ {
				if i%10 == 0 {
					_ = s.update(pods[i*7919%n])
				} else {
					s.get(keys[i*7919%n])
				}
			}
		})
	})
}
