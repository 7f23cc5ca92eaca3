package watchstream

import (
	"container/heap"
	"runtime"
	"sync"
	"time"
)

// timers tell detached streams when their time has come. All streams share one timer, that
// of the stream whose time comes first: a timer for each would take as much memory as
// the cursor of a watch.
type timers struct {
	mu    sync.Mutex // no other lock is taken while it is held
	heap  timerHeap
	timer *time.Timer // nil until the first is set
	armed time.Time   // when the timer fires; zero: it does not
}

// timerHeap has the stream whose time comes first at its top.
type timerHeap []*Stream

// Len implements heap.Interface.
func (h timerHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h timerHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap implements heap.Interface.
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (h *timerHeap) Push(t any) {
	*h = append(*h, t.(*Stream))
	(*h)[len(*h)-1].place = len(*h)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.place = 0
	return t
}

// set has a stream signalled at a time, in place of any that was set before.
func (s *timers) set(t *Stream, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.due = due
	if t.place == 0 {
		heap.Push(&s.heap, t)
	} else {
		heap.Fix(&s.heap, t.place-1)
	}
	s.arm()
}

// remove forgets a stream.
func (s *timers) remove(t *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.place != 0 {
		heap.Remove(&s.heap, t.place-1)
	}
	if len(s.heap) == 0 && s.timer != nil {
		s.timer.Stop()
		s.armed = time.Time{}
	}
}

// arm sets the timer for the first stream, unless it fires early enough. s.mu is held.
func (s *timers) arm() {
	if len(s.heap) == 0 {
		return
	}
	first := s.heap[0].due
	if !s.armed.IsZero() && !first.Before(s.armed) {
		return
	}
	s.armed = first
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(first), s.fire)
	} else {
		s.timer.Reset(time.Until(first))
	}
}

// fire signals the streams whose time has come.
func (s *timers) fire() {
	const perTurn = 8 // streams that are woken before others have their turn
	s.mu.Lock()
	s.armed = time.Time{}
	for {
		now := time.Now()
		var due [perTurn]*Stream
		n := 0
		for ; n < perTurn && len(s.heap) > 0 && !s.heap[0].due.After(now); n++ {
			due[n] = heap.Pop(&s.heap).(*Stream)
		}
		if n == 0 {
			break
		}
		s.mu.Unlock()
		for _, t := range due[:n] {
			t.signal(signalDue)
		}
		runtime.Gosched()
		s.mu.Lock()
	}
	s.arm()
	s.mu.Unlock()
}
