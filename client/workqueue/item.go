package workqueue

import (
	"slices"
	"time"
)

// item is the state of one key. It exists for as long as the key waits, is
// delayed or is worked on; one that waits for a worker is in a level, one that
// is worked on in the list of those, and one that is delayed in the heap,
// perhaps at the same time.
type item[K comparable] struct {
	key        K
	prev, next *item[K]

	waiting  bool // in a level, or to be put there by Done
	working  bool
	priority int       // of a key that waits; while working: that it was taken with
	since    time.Time // when it began to wait; while working: when work began

	// While working and waiting: when it was added again, and how.
	again        time.Time
	nextPriority int

	place       int // in the heap of delayed keys, counted from 1; 0: not there
	due         time.Time
	duePriority int
}

// item returns that of key. The caller must make it wait or be delayed. It
// needs q.mu.
func (q *Queue[K]) item(key K) *item[K] {
	if i, ok := q.items[key]; ok {
		return i
	}
	i := q.free.take()
	i.key = key
	q.items[key] = i
	q.peak = max(q.peak, len(q.items))
	return i
}

// release drops an item that nothing holds any more. It needs q.mu.
func (q *Queue[K]) release(i *item[K]) {
	if i.waiting || i.working || i.place != 0 {
		return
	}
	delete(q.items, i.key)
	q.free.give(i)
	// A map never gives its memory back; that of a burst is not kept.
	if len(q.items) == 0 && q.peak > sparesMost {
		q.items, q.peak = make(map[K]*item[K]), 0
	}
}

// sparesMost bounds the items that are kept for reuse.
const sparesMost = 1024

// spares are items for reuse, so that keys that come and go cost no memory.
type spares[K comparable] struct {
	first *item[K]
	n     int
}

func (s *spares[K]) take() *item[K] {
	i := s.first
	if i == nil {
		return &item[K]{}
	}
	s.first, i.next = i.next, nil
	s.n--
	return i
}

func (s *spares[K]) give(i *item[K]) {
	if s.n >= sparesMost {
		return
	}
	*i = item[K]{next: s.first}
	s.first = i
	s.n++
}

// list is a doubly linked list through the items themselves.
type list[K comparable] struct{ first, last *item[K] }

func (l *list[K]) push(i *item[K]) {
	i.prev = l.last
	if l.last == nil {
		l.first = i
	} else {
		l.last.next = i
	}
	l.last = i
}

func (l *list[K]) remove(i *item[K]) {
	if i.prev == nil {
		l.first = i.next
	} else {
		i.prev.next = i.next
	}
	if i.next == nil {
		l.last = i.prev
	} else {
		i.next.prev = i.prev
	}
	i.prev, i.next = nil, nil
}

// level is the keys of one priority, in the order in which they got it.
type level[K comparable] struct {
	priority int
	n        int
	list[K]
}

// levels are the keys that wait for a worker.
type levels[K comparable] struct {
	all []level[K] // the highest priority first; none is empty
	n   int
}

func (l *levels[K]) push(i *item[K]) {
	at, found := l.find(i.priority)
	if !found {
		l.all = slices.Insert(l.all, at, level[K]{priority: i.priority})
	}
	l.all[at].push(i)
	l.all[at].n++
	l.n++
}

func (l *levels[K]) remove(i *item[K]) {
	at, _ := l.find(i.priority)
	l.all[at].remove(i)
	if l.all[at].n--; l.all[at].n == 0 {
		l.all = slices.Delete(l.all, at, at+1)
	}
	l.n--
}

func (l *levels[K]) find(priority int) (at int, found bool) {
	return slices.BinarySearchFunc(l.all, priority, func(in level[K], priority int) int {
		switch {
		case in.priority > priority:
			return -1
		case in.priority < priority:
			return 1
		}
		return 0
	})
}

// depths returns how many keys each level has.
func (l *levels[K]) depths() (depths []PriorityDepth) {
	for _, in := range l.all {
		depths = append(depths, PriorityDepth{in.priority, in.n})
	}
	return depths
}

// oldest returns the first key of the level whose first key has waited
// longest; of several the lowest. There must be one.
func (l *levels[K]) oldest() *item[K] {
	found := l.all[0].first
	for _, in := range l.all[1:] {
		if !in.first.since.After(found.since) {
			found = in.first
		}
	}
	return found
}
