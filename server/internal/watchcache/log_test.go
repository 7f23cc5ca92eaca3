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
	l := &log{shift: 4} // from position 0
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

// TestLogPrepend puts entries in front of logs of all lengths, with and without
// evicted ones, and goes on as if they had always been there.
func TestLogPrepend(t *testing.T) {
	for appended := range 40 {
		for evicted := range appended + 1 {
			for _, count := range []int{0, 1, 15, 16, 17, 33} {
				l := newLog(4)
				for i := range appended {
					l.append(&entry{sequence: firstPosition + uint64(i)})
				}
				for range evicted {
					l.evict()
				}
				before := make([]*entry, count)
				for i := range before {
					before[i] = &entry{}
				}
				l.prepend(before)
				l.append(&entry{sequence: l.end.Load()})
				if want := count + appended - evicted + 1; l.len() != want {
					t.Fatalf("%d entries, want %d", l.len(), want)
				}
				for p := l.oldest.Load(); p < l.end.Load(); p++ {
					if e := l.at(p); e == nil || e.sequence != p {
						t.Fatalf("appended %d, evicted %d, prepended %d: position %d holds %v", appended, evicted, count, p, e)
					}
				}
				for p := l.oldest.Load(); p < l.end.Load(); p++ {
					if e := l.evict(); e == nil || e.sequence != p {
						t.Fatalf("appended %d, evicted %d, prepended %d: evicted %v at %d", appended, evicted, count, e, p)
					}
				}
				l.append(&entry{sequence: l.end.Load()})
				if e := l.at(l.oldest.Load()); e == nil || e.sequence != l.oldest.Load() {
					t.Fatal("the log does not go on")
				}
			}
		}
	}
}
