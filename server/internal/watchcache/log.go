package watchcache

import "sync/atomic"

// log is an append-only sequence of entries with one writer and any number of
// readers that hold nothing but a position. Readers take no lock: an entry is
// stored in its slot before the end moves past it, and an evicted slot is
// emptied, so that what a reader finds is either the entry or the fact that it
// is gone. Entries lie in chunks under a directory, not in a linked list: a
// reader that never comes back keeps none of them alive.
type log struct {
	shift     uint8 // a chunk has 1<<shift slots
	oldest    atomic.Uint64
	end       atomic.Uint64
	directory atomic.Pointer[directory]
}

// directory lists the chunks that hold entries. A published one is not
// changed, except that the writer appends behind its length.
type directory struct {
	first  uint64 // number of the first chunk
	chunks []chunk
}

type chunk []atomic.Pointer[entry]

// firstPosition is where logs begin, so that the past can be put in front.
const firstPosition = 1 << 40

func newLog(shift uint8) *log {
	l := &log{shift: shift}
	l.oldest.Store(firstPosition)
	l.end.Store(firstPosition)
	return l
}

// prepend puts entries, which must be in order, in front of the oldest. Only
// the writer calls it. Readers see all of them or none.
func (l *log) prepend(entries []*entry) {
	if len(entries) == 0 {
		return
	}
	old, oldest := l.directory.Load(), l.oldest.Load()
	start := oldest - uint64(len(entries))
	d := &directory{first: start >> l.shift}
	var chunks []chunk
	behind := oldest >> l.shift // number of the first chunk that may be there
	if old != nil && len(old.chunks) > 0 {
		chunks, behind = old.chunks, old.first
	}
	for number := d.first; number < behind || number == behind && len(chunks) == 0 && l.slot(oldest) > 0; number++ {
		d.chunks = append(d.chunks, make(chunk, 1<<l.shift))
	}
	d.chunks = append(d.chunks, chunks...)
	for i, e := range entries {
		position := start + uint64(i)
		e.sequence = position
		d.chunks[position>>l.shift-d.first][l.slot(position)].Store(e)
	}
	l.directory.Store(d)
	l.oldest.Store(start)
}

// append adds an entry at the end. Only the writer calls it.
func (l *log) append(e *entry) {
	position := l.end.Load()
	number := position >> l.shift
	d := l.directory.Load()
	if d == nil || len(d.chunks) == 0 {
		d = &directory{first: number}
	}
	if number-d.first >= uint64(len(d.chunks)) {
		d = &directory{first: d.first, chunks: append(d.chunks, make(chunk, 1<<l.shift))}
		l.directory.Store(d)
	}
	d.chunks[number-d.first][l.slot(position)].Store(e)
	l.end.Store(position + 1)
}

func (l *log) slot(position uint64) uint64 { return position & (1<<l.shift - 1) }

// at returns the entry at a position before the end; nil if it was evicted.
func (l *log) at(position uint64) *entry {
	d := l.directory.Load()
	if d == nil || position < l.oldest.Load() {
		return nil
	}
	number := position >> l.shift
	if number < d.first || number-d.first >= uint64(len(d.chunks)) {
		return nil
	}
	return d.chunks[number-d.first][l.slot(position)].Load()
}

// evict drops the oldest entry and returns it; nil if the log is empty. Only
// the writer calls it.
func (l *log) evict() *entry {
	position := l.oldest.Load()
	if position == l.end.Load() {
		return nil
	}
	d := l.directory.Load()
	l.oldest.Store(position + 1) // first, so that an empty slot is always known to be old
	e := d.chunks[position>>l.shift-d.first][l.slot(position)].Swap(nil)
	if l.slot(position+1) == 0 {
		l.directory.Store(&directory{first: d.first + 1, chunks: d.chunks[1:]})
	}
	return e
}

// len returns how many entries are held.
func (l *log) len() int { return int(l.end.Load() - l.oldest.Load()) }

// search returns the first position whose entry satisfies after, or the end.
// Entries that satisfy it must follow those that do not. The writer must not
// run at the same time.
func (l *log) search(after func(*entry) bool) uint64 {
	low, high := l.oldest.Load(), l.end.Load()
	for low < high {
		mid := low + (high-low)/2
		if after(l.at(mid)) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
