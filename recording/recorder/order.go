package recorder

import (
	"container/heap"
	"time"

	"github.com/levelwire/levelwire/recording"
)

const (
	// reconnectTime is how long a change waits for those of other resources while a watch
	// is cut, whose changes come when it has been opened again.
	reconnectTime = 30 * time.Second
	// maxHeld bounds the bytes of the changes that wait.
	maxHeld = 32 << 20
)

// held is a change that waits.
type held struct {
	recording.Entry
	number int // the order in which changes came
}

// order sorts changes of all resources by their revision. It is not for concurrent use.
type order struct {
	waiting heldHeap
	number  int
	bytes   int
	last    time.Time // of the last change that came
}

func (o *order) add(e recording.Entry) {
	o.number++
	o.bytes += len(e.Value) + len(e.Key)
	heap.Push(&o.waiting, held{e, o.number})
}

// release calls write with the changes that have waited long enough, in order.
func (o *order) release(now time.Time, wait time.Duration, write func(recording.Entry) error) error {
	for len(o.waiting) > 0 {
		first := &o.waiting[0]
		if now.Sub(first.Time) < wait && o.bytes <= maxHeld {
			return nil
		}
		e := heap.Pop(&o.waiting).(held).Entry
		o.bytes -= len(e.Value) + len(e.Key)
		// Times do not go back in a recording, although what came first may be written later.
		if e.Time.Before(o.last) {
			e.Time = o.last
		}
		o.last = e.Time
		if err := write(e); err != nil {
			return err
		}
	}
	return nil
}

// heldHeap implements heap.Interface: the lowest revision first, and of one revision
// what came first.
type heldHeap []held

func (h heldHeap) Len() int      { return len(h) }
func (h heldHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h heldHeap) Less(i, j int) bool {
	if h[i].Revision != h[j].Revision {
		return h[i].Revision < h[j].Revision
	}
	return h[i].number < h[j].number
}

// Push implements heap.Interface.
func (h *heldHeap) Push(x any) { *h = append(*h, x.(held)) }

// Pop implements heap.Interface.
func (h *heldHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = held{}
	*h = (*h)[:last]
	return e
}
