package scheduler

import (
	"container/heap"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstBackOff and longestBackOff are for how long a pod is not tried again after it has been refused:
	// kube-scheduler's defaults. A pod that was refused once is tried again as soon as room appears, so that of pods
	// that wait together the most important goes first.
	firstBackOff   = time.Second
	longestBackOff = 10 * time.Second
)

// waiter is a pod that fitted nowhere.
type waiter struct {
	key      types.NamespacedName
	priority int
	refused  int       // how often
	until    time.Time // it is not tried again before
	at       int       // in waitlist.delayed, or -1
}

// waitlist has the pods that fitted nowhere. When room appears, they are tried again, but none more often than its
// back-off allows: pods that never fit, of which there may be 10,000, do not cost 10,000 decisions for each pod that
// comes to a node or goes. It is safe for concurrent use.
type waitlist struct {
	mu sync.Mutex
	// rooms counts the times room has appeared, so that a decision made
	// meanwhile is not taken for one about the present.
	rooms uint64
	// known are all, as long as the pods exist and are not bound.
	known map[types.NamespacedName]*waiter
	// asleep are those that wait for room, and delayed those that wait for the end of their back-off, as room has appeared.
	asleep  map[types.NamespacedName]*waiter
	delayed delayed
	// earlier receives a signal, sent without waiting, that the first of delayed is another one.
	earlier chan struct{}
}

func newWaitlist() *waitlist {
	return &waitlist{
		known: map[types.NamespacedName]*waiter{}, asleep: map[types.NamespacedName]*waiter{},
		earlier: make(chan struct{}, 1),
	}
}

// priority is a pod's importance, which admission has looked up.
func priority(pod *corev1.Pod) int {
	if pod.Spec.Priority == nil {
		return 0
	}
	return int(*pod.Spec.Priority)
}

func (l *waitlist) roomsSeen() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rooms
}

// refuse lets a pod wait for room. If some has appeared since rooms, it waits for the end of its back-off only, or is to
// be tried again at once: what noted the room did not find the pod waiting.
func (l *waitlist) refuse(key types.NamespacedName, priority int, rooms uint64) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.known[key]
	if w == nil {
		w = &waiter{key: key, at: -1}
		l.known[key] = w
	}
	l.wake(w)
	now := time.Now()
	w.priority, w.until = priority, now
	if w.refused > 0 {
		w.until = now.Add(min(firstBackOff<<min(w.refused-1, 10), longestBackOff))
	}
	w.refused++
	if l.rooms != rooms {
		return l.due(w, now)
	}
	l.asleep[key] = w
	return false
}

// wake takes a pod out of those that wait; it stays known. It needs mu.
func (l *waitlist) wake(w *waiter) {
	delete(l.asleep, w.key)
	if w.at >= 0 {
		heap.Remove(&l.delayed, w.at)
	}
}

// due reports whether a pod's back-off is over; if not, the pod is delayed. It needs mu.
func (l *waitlist) due(w *waiter, now time.Time) bool {
	if !now.Before(w.until) {
		return true
	}
	heap.Push(&l.delayed, w)
	if w.at == 0 {
		select {
		case l.earlier <- struct{}{}:
		default:
		}
	}
	return false
}

// forget drops a pod that needs no node any more.
func (l *waitlist) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.known[key]; w != nil {
		l.wake(w)
		delete(l.known, key)
	}
}

// room notes that room has appeared, and calls retry for each pod that may be tried again now. It looks at
// those that have been refused since the last time only.
func (l *waitlist) room(retry func(key types.NamespacedName, priority int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rooms++
	now := time.Now()
	for key, w := range l.asleep {
		delete(l.asleep, key)
		if l.due(w, now) {
			retry(key, w.priority)
		}
	}
}

// next calls retry for each pod whose back-off is over, and returns when that of another one will be: never, if it
// is 0.
func (l *waitlist) next(retry func(key types.NamespacedName, priority int)) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for len(l.delayed) > 0 {
		w := l.delayed[0]
		if now.Before(w.until) {
			return w.until.Sub(now)
		}
		heap.Pop(&l.delayed)
		retry(w.key, w.priority)
	}
	return 0
}

// delayed is a heap by the end of the back-off.
type delayed []*waiter

func (d delayed) Len() int           { return len(d) }
func (d delayed) Less(i, j int) bool { return d[i].until.Before(d[j].until) }

func (d delayed) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

// Push is called by the heap only.
func (d *delayed) Push(x any) {
	w, _ := x.(*waiter)
	w.at = len(*d)
	*d = append(*d, w)
}

// Pop is called by the heap only.
func (d *delayed) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d, w.at = (*d)[:last], -1
	return w
}
