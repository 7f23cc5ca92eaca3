package watchcache

import (
	"sync"
	"testing"
)

// TestLogReadersWithoutLocks lets readers run after a writer that appends and
// evicts. Each must find an entry at its position, or that it is gone, never
// another one.
func TestLogReadersWithoutLocks(t *testing.T) {
	const total, kept = 50_000, 300
	l := &log{shift: 4}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for position := uint64(0); position < total; {
				if position == l.end.Load() {
					continue
				}
				e := l.at(position)
				switch {
				case e != nil && e.sequence != position:
					t.Errorf("position %d holds entry %d", position, e.sequence)
					return
				case e == nil && position >= l.oldest.Load():
					t.Errorf("position %d is empty, and %d is the oldest", position, l.oldest.Load())
					return
				case e == nil:
					position = l.oldest.Load()
				default:
					position++
				}
			}
		})
	}
	for i := range uint64(total) {
		l.append(&entry{sequence: i, revision: rev(int(i))})
		if l.len() > kept {
			if e := l.evict(); e.sequence != i-kept {
				t.Errorf("evicted %d, want %d", e.sequence, i-kept)
			}
		}
	}
	group.Wait()
	if chunks := len(l.directory.Load().chunks); chunks > kept/16+2 {
		t.Errorf("%d chunks for %d entries", chunks, kept)
	}
	if got := l.search(func(e *entry) bool { return e.revision > total-10 }); got != total-9 {
		t.Errorf("search found %d", got)
	}
}

func TestEmptyLog(t *testing.T) {
	l := &log{shift: 4}
	if l.evict() != nil || l.at(0) != nil || l.search(func(*entry) bool { return true }) != 0 {
		t.Error("an empty log is not empty")
	}
	for range 100 { // across chunks, empty in between
		l.append(&entry{})
		if l.evict() == nil || l.evict() != nil || l.len() != 0 {
			t.Fatal("append and evict do not balance")
		}
	}
}
