package workqueue

// fifo is a first-in first-out queue over a ring that grows and shrinks.
type fifo[K any] struct {
	ring []K // its length is a power of two, or 0
	head int
	n    int
}

func (f *fifo[K]) len() int { return f.n }

func (f *fifo[K]) push(k K) {
	if f.n == len(f.ring) {
		f.resize(max(8, 2*f.n))
	}
	f.ring[(f.head+f.n)&(len(f.ring)-1)] = k
	f.n++
}

// pop needs a key to be there.
func (f *fifo[K]) pop() K {
	var zero K
	k := f.ring[f.head]
	f.ring[f.head] = zero
	f.head = (f.head + 1) & (len(f.ring) - 1)
	f.n--
	// A burst must not pin its memory for ever.
	if len(f.ring) > 1024 && f.n < len(f.ring)/8 {
		f.resize(len(f.ring) / 4)
	}
	return k
}

func (f *fifo[K]) resize(size int) {
	ring := make([]K, size)
	for i := range f.n {
		ring[i] = f.ring[(f.head+i)&(len(f.ring)-1)]
	}
	f.ring, f.head = ring, 0
}
