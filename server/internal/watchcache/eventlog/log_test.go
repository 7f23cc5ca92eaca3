package eventlog

import (
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/storage"
	"sync"
	"testing"
)

// TestLogReadersWithoutLocks lets readers run after a writer that appends and
// evicts. Each must find an entry at its position, or that it is evicted, never
// another one.
func TestLogReadersWithoutLocks(t *testing.T) {
	const total, kept = 50_000, 300
	l := &Log{shift: 4}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for position := uint64(0); position < total; {
				if position == l.end.Load() {
					continue
				}
				e := l.At(position)
				switch {
				case e != nil && e.Sequence != position:
					t.Errorf("position %d holds entry %d", position, e.Sequence)
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
		l.Append(&Entry{Sequence: i, Revision: storage.Revision(i)})
		if l.Len() > kept {
			if e := l.Evict(); e.Sequence != i-kept {
				t.Errorf("evicted %d, want %d", e.Sequence, i-kept)
			}
		}
	}
	group.Wait()
	if chunks := len(l.directory.Load().chunks); chunks > kept/16+2 {
		t.Errorf("%d chunks for %d entries", chunks, kept)
	}
	if got := l.Search(func(e *Entry) bool { return e.Revision > total-10 }); got != total-9 {
		t.Errorf("search found %d", got)
	}
}

func TestEmptyLog(t *testing.T) {
	l := &Log{shift: 4} // from position 0
	if l.Evict() != nil || l.At(0) != nil || l.Search(func(*Entry) bool { return true }) != 0 {
		t.Error("an empty log is not empty")
	}
	for range 100 { // across chunks, empty in between
		l.Append(&Entry{})
		if l.Evict() == nil || l.Evict() != nil || l.Len() != 0 {
			t.Fatal("append and evict do not balance")
		}
	}
}

// TestLogPrepend puts entries in front of logs of all lengths, with and without
// evicted ones, and goes on as if they had always been in it.
func TestLogPrepend(t *testing.T) {
	for appended := range 40 {
		for evicted := range appended + 1 {
			for _, count := range []int{0, 1, 15, 16, 17, 33} {
				l := New(4)
				for i := range appended {
					l.Append(&Entry{Sequence: firstPosition + uint64(i)})
				}
				for range evicted {
					l.Evict()
				}
				before := make([]*Entry, count)
				for i := range before {
					before[i] = &Entry{}
				}
				l.Prepend(before)
				l.Append(&Entry{Sequence: l.end.Load()})
				if want := count + appended - evicted + 1; l.Len() != want {
					t.Fatalf("%d entries, want %d", l.Len(), want)
				}
				for p := l.oldest.Load(); p < l.end.Load(); p++ {
					if e := l.At(p); e == nil || e.Sequence != p {
						t.Fatalf("appended %d, evicted %d, prepended %d: position %d holds %v", appended, evicted, count, p, e)
					}
				}
				for p := l.oldest.Load(); p < l.end.Load(); p++ {
					if e := l.Evict(); e == nil || e.Sequence != p {
						t.Fatalf("appended %d, evicted %d, prepended %d: evicted %v at %d", appended, evicted, count, e, p)
					}
				}
				l.Append(&Entry{Sequence: l.end.Load()})
				if e := l.At(l.oldest.Load()); e == nil || e.Sequence != l.oldest.Load() {
					t.Fatal("the log does not go on")
				}
			}
		}
	}
}
