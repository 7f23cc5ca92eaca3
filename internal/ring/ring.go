package ring

// Ring is a first-in-first-out queue. The zero value is empty. It is not safe
// for concurrent use.
type Ring[T any] struct {
	items []T // of a length that is a power of two, or 0
	head  int
	n     int
}

// small is the capacity of the first push, large that which an empty queue does not
// keep.
const small, large = 16, 4096

// Len is the number of items.
func (r *Ring[T]) Len() int { return r.n }

// Push appends an item.
func (r *Ring[T]) Push(v T) {
	if r.n == len(r.items) {
		grown := make([]T, max(small, 2*len(r.items)))
		copy(grown[copy(grown, r.items[r.head:]):], r.items[:r.head])
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)&(len(r.items)-1)] = v
	r.n++
}

// Front returns the oldest item; there must be one.
func (r *Ring[T]) Front() T { return r.items[r.head] }

// Pop removes and returns the oldest item; there must be one.
func (r *Ring[T]) Pop() T {
	var none T
	v := r.items[r.head]
	r.items[r.head] = none
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.n--
	if r.n == 0 && len(r.items) > large {
		*r = Ring[T]{}
	}
	return v
}
