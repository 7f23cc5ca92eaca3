package eventlog

import "sync/atomic"

// Log is an append-only sequence of entries with one writer and any number of
// readers that hold nothing but a position. Readers take no lock: an entry is
// stored in its slot before the end moves past it, and an evicted slot is
// emptied, so that a reader finds either the entry or nil. Entries lie in chunks
// under a directory, not in a linked list: a reader that is never closed keeps
// none of them in memory.
type Log struct {
	shift     uint8 // a chunk has 1<<shift slots
	oldest    atomic.Uint64
	end       atomic.Uint64
	directory atomic.Pointer[directory]
}

// directory lists the chunks that hold entries. A published directory is not
// changed, except that the writer appends behind its length.
type directory struct {
	first  uint64 // number of the first chunk
	chunks []chunk
}

type chunk []atomic.Pointer[Entry]

// firstPosition is where logs begin, so that earlier entries can be prepended.
const firstPosition = 1 << 40

// New returns an empty log with chunks of 1<<shift entries.
func New(shift uint8) *Log {
	l := &Log{shift: shift}
	l.oldest.Store(firstPosition)
	l.end.Store(firstPosition)
	return l
}

// Oldest returns the position of the oldest entry, or the end.
func (l *Log) Oldest() uint64 { return l.oldest.Load() }

// End returns the position behind the newest entry.
func (l *Log) End() uint64 { return l.end.Load() }

// Prepend puts entries, which must be in order, in front of the oldest and sets
// their Sequence. Only the writer calls it. Readers see all of them or none.
func (l *Log) Prepend(entries []*Entry) {
	if len(entries) == 0 {
		return
	}
	old, oldest := l.directory.Load(), l.oldest.Load()
	start := oldest - uint64(len(entries))
	d := &directory{first: start >> l.shift}
	var chunks []chunk
	next := oldest >> l.shift // number of the first chunk that may exist
	if old != nil && len(old.chunks) > 0 {
		chunks, next = old.chunks, old.first
	}
	for number := d.first; number < next || number == next && len(chunks) == 0 && l.slot(oldest) > 0; number++ {
		d.chunks = append(d.chunks, make(chunk, 1<<l.shift))
	}
	d.chunks = append(d.chunks, chunks...)
	for i, e := range entries {
		position := start + uint64(i)
		e.Sequence = position
		d.chunks[position>>l.shift-d.first][l.slot(position)].Store(e)
	}
	l.directory.Store(d)
	l.oldest.Store(start)
}

// Append adds an entry at the end. Only the writer calls it.
func (l *Log) Append(e *Entry) {
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

func (l *Log) slot(position uint64) uint64 { return position & (1<<l.shift - 1) }

// At returns the entry at a position before the end; nil if it was evicted.
func (l *Log) At(position uint64) *Entry {
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

// Evict drops the oldest entry and returns it; nil if the log is empty. Only the
// writer calls it.
func (l *Log) Evict() *Entry {
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

// Len returns how many entries are held.
func (l *Log) Len() int { return int(l.end.Load() - l.oldest.Load()) }

// Search returns the first position whose entry satisfies after, or the end.
// Entries that satisfy it must follow those that do not. The writer must not
// run at the same time.
func (l *Log) Search(after func(*Entry) bool) uint64 {
	low, high := l.oldest.Load(), l.end.Load()
	for low < high {
		mid := low + (high-low)/2
		if after(l.At(mid)) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
