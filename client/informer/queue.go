package informer

import "github.com/levelwire/levelwire/internal/ring"

// kind of a notification.
type kind uint8

const (
	added kind = iota
	updated
	deleted
	// These are not about an object: everything before them has been delivered.
	marker  // the first list is complete
	flushed // Registration.Flush waits for that
)

// isMark reports whether it is no call of the handler.
func (k kind) isMark() bool { return k >= marker }

// notification is one call of a handler. Each event is copied into each handler's queue and
// out of it, so it has no more than that: what few need lies beside the queue.
type notification[T any] struct {
	kind    kind
	initial bool // of added
	resync  bool // of updated: nothing changed
	// finalStateUnknown, of deleted: the deletion itself was missed.
	finalStateUnknown bool
	old, obj          T // old: of updated
}

// isEvent reports whether it is about a change of an object.
func (n *notification[T]) isEvent() bool { return !n.resync && !n.kind.isMark() }

// handlerQueue holds the notifications that wait for a handler. It is not safe
// for concurrent use; its listener locks.
type handlerQueue[T any] interface {
	// push returns how many events it merged away, or ErrOverflow.
	push(key string, n notification[T]) (merged int, err error)
	// pop stores the next notification in n, or returns false: there is none.
	pop(n *notification[T]) bool
	len() int
}

// coalescing is the queue that is bounded by the number of objects. Each has
// at most three notifications, by these rules:
//
//   - a state replaces the state before it: the handler sees the newer one,
//     with the old one it really saw last;
//   - an end is kept, and so is what begins after it under the same name;
//   - an object that was created and deleted after a deletion still in the
//     queue leaves no trace.
type coalescing[T any] struct {
	order ring.Ring[*waiting[T]]
	byKey map[string]*waiting[T]
	free  []*waiting[T]
}

// waiting is what one object's handler call is about: up to three
// notifications, oldest first.
type waiting[T any] struct {
	key   string
	queue [3]notification[T]
	n     int
}

func newCoalescing[T any]() *coalescing[T] {
	return &coalescing[T]{byKey: map[string]*waiting[T]{}}
}

func (q *coalescing[T]) len() int { return q.order.Len() }

func (q *coalescing[T]) push(key string, n notification[T]) (merged int, err error) {
	w := q.byKey[key]
	if n.kind.isMark() || w == nil {
		w = q.place(key)
		w.queue[0], w.n = n, 1
		if !n.kind.isMark() {
			q.byKey[key] = w
		}
		q.order.Push(w)
		return 0, nil
	}
	return w.merge(n), nil
}

func (q *coalescing[T]) place(key string) *waiting[T] {
	if n := len(q.free); n > 0 {
		w := q.free[n-1]
		q.free = q.free[:n-1]
		w.key = key
		return w
	}
	return &waiting[T]{key: key}
}

// merge adds a notification to those of the same object and returns how many
// were merged away.
func (w *waiting[T]) merge(n notification[T]) int {
	last := &w.queue[w.n-1]
	switch {
	case n.resync:
		return 1 // the notification that waits already covers it
	case n.kind == updated && last.kind != deleted:
		last.obj, last.resync = n.obj, false
		return 1
	case n.kind == deleted && last.kind == updated:
		*last = n
		return 1
	case n.kind == deleted && last.kind == deleted:
		*last = n
		return 1
	case w.n < len(w.queue):
		w.queue[w.n] = n
		w.n++
		return 0
	case n.kind == added: // deleted, added, deleted: the object in the middle goes
		w.queue[1], w.queue[2] = n, notification[T]{}
		w.n = 2
		return 2
	default: // added, deleted, added: the first object goes
		w.queue[0], w.queue[1], w.queue[2] = w.queue[2], n, notification[T]{}
		w.n = 2
		return 2
	}
}

// pop takes the oldest object's oldest notification. The others of that
// object keep its place.
func (q *coalescing[T]) pop(n *notification[T]) bool {
	if q.order.Len() == 0 {
		return false
	}
	w := q.order.Front()
	*n = w.queue[0]
	copy(w.queue[:], w.queue[1:w.n])
	w.queue[w.n-1] = notification[T]{}
	w.n--
	if w.n == 0 {
		q.order.Pop()
		if !n.kind.isMark() {
			delete(q.byKey, w.key)
		}
		q.recycle(w)
	}
	return true
}

// freeMost bounds the emptied places that are kept.
const freeMost = 1024

func (q *coalescing[T]) recycle(w *waiting[T]) {
	w.key = ""
	if len(q.free) < freeMost {
		q.free = append(q.free, w)
	}
}

// complete is the queue that keeps every event, up to a limit. Resyncs and marks are no
// events: they do not count, and an object has at most one in the queue, so
// they are bounded by the number of objects.
type complete[T any] struct {
	order   ring.Ring[notification[T]]
	resyncs resyncs
	events  int // in the queue
	limit   int
}

// resyncs are the keys of the resyncs in a queue.
type resyncs struct {
	order ring.Ring[string] // as in the queue
	keys  map[string]struct{}
}

func (q *complete[T]) len() int { return q.order.Len() }

func (q *complete[T]) push(key string, n notification[T]) (merged int, err error) {
	switch {
	case n.isEvent():
		if q.events >= q.limit {
			return 0, ErrOverflow
		}
		q.events++
	case n.resync && !q.resyncs.push(key):
		return 1, nil
	}
	q.order.Push(n)
	return 0, nil
}

func (q *complete[T]) pop(n *notification[T]) bool {
	if q.order.Len() == 0 {
		return false
	}
	*n = q.order.Pop()
	switch {
	case n.isEvent():
		q.events--
	case n.resync:
		q.resyncs.pop()
	}
	return true
}

// push returns false if the key's resync waits already.
func (r *resyncs) push(key string) bool {
	if _, waits := r.keys[key]; waits {
		return false
	}
	if r.keys == nil {
		r.keys = map[string]struct{}{}
	}
	r.keys[key] = struct{}{}
	r.order.Push(key)
	return true
}

func (r *resyncs) pop() { delete(r.keys, r.order.Pop()) }
