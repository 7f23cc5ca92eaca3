package informer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func versioned(name string, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(version)}}
}

// Whatever happens to objects and however slow the handler is, its calls are
// consistent and end with the present state, and the queue stays within three
// notifications per object.
func TestCoalescedCallsAreConsistentAndEndWithTheTruth(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		queue := newCoalescing[*corev1.Pod]()
		truth := map[string]*corev1.Pod{}
		v := &view{objects: map[string]string{}}
		ends, deletions := 0, 0
		deliver := func() bool {
			var n notification[*corev1.Pod]
			if !queue.pop(&n) {
				return false
			}
			switch n.kind {
			case added:
				v.OnAdd(n.obj, n.initial)
			case updated:
				v.OnUpdate(n.old, n.obj)
			case deleted:
				deletions++
				v.OnDelete(n.obj, n.finalStateUnknown)
			}
			return true
		}
		for version := 1; version < 5000; version++ {
			name := fmt.Sprint(random.IntN(5))
			old := truth[name]
			next := versioned(name, version)
			n := notification[*corev1.Pod]{kind: added, obj: next}
			switch {
			case old != nil && random.IntN(3) == 0:
				n = notification[*corev1.Pod]{kind: deleted, obj: next}
				next = nil
				ends++
			case old != nil && random.IntN(4) == 0:
				n, next = notification[*corev1.Pod]{kind: updated, old: old, obj: old, resync: true}, old
			case old != nil:
				n = notification[*corev1.Pod]{kind: updated, old: old, obj: next}
			}
			if next == nil {
				delete(truth, name)
			} else {
				truth[name] = next
			}
			if _, err := queue.push(name, n); err != nil {
				t.Fatal(err)
			}
			if queue.len() > 5 {
				t.Fatalf("%d objects are queued, there are 5", queue.len())
			}
			// Sometimes the handler is fast, sometimes it is not there.
			for version%1000 < 500 && random.IntN(3) > 0 && deliver() {
			}
		}
		for deliver() {
		}
		if v.failure != "" {
			t.Fatalf("seed %d: %s", seed, v.failure)
		}
		if len(v.objects) != len(truth) {
			t.Fatalf("seed %d: the handler ended with %v", seed, v.objects)
		}
		for name, pod := range truth {
			if v.objects[name] != pod.ResourceVersion {
				t.Fatalf("seed %d: the handler ended with %s at %s, want %s", seed, name, v.objects[name], pod.ResourceVersion)
			}
		}
		if deletions == 0 || deletions > ends {
			t.Fatalf("seed %d: %d of %d deletions were delivered", seed, deletions, ends)
		}
	}
}

// BenchmarkHandlerQueue is what one event costs the queues alone.
func BenchmarkHandlerQueue(b *testing.B) {
	for _, handlers := range []int{1, 10} {
		b.Run(fmt.Sprintf("handlers=%d", handlers), func(b *testing.B) {
			queues := make([]*coalescing[*corev1.Pod], handlers)
			for n := range queues {
				queues[n] = newCoalescing[*corev1.Pod]()
			}
			pods := make([]*corev1.Pod, 1000)
			for n := range pods {
				pods[n] = versioned(fmt.Sprint(n), n)
			}
			var n notification[*corev1.Pod]
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pod := pods[i%len(pods)]
				for _, q := range queues {
					_, _ = q.push(pod.Name, notification[*corev1.Pod]{kind: updated, old: pod, obj: pod})
					q.pop(&n)
				}
			}
		})
	}
}

// TestNotificationsAreSmall: each event is copied into the queue of each handler and out of it. A
// field that few notifications need lies beside the queue instead.
func TestNotificationsAreSmall(t *testing.T) {
	const flags, pointer = unsafe.Sizeof(uint64(0)), unsafe.Sizeof(uintptr(0))
	if size := unsafe.Sizeof(notification[*corev1.Pod]{}); size > flags+2*pointer {
		t.Errorf("a notification takes %d bytes", size)
	}
}
