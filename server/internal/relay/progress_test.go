package relay

import (
	"testing"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// TestPromisedProgress: a consistent read of a resource in which nothing changes opens no
// second watch if the upstream brings the version by the stream. If the upstream breaks its
// promise, or gives none, the second watch brings the version.
func TestPromisedProgress(t *testing.T) {
	upstream := &hanging{version: 7, unchanged: true, events: make(chan string, 1)}
	s, _ := sourceOf(t, upstream)
	// read returns when the cache has the upstream's next version, how many watches were opened
	// for that.
	read := func(promises, keeps bool, grace time.Duration) int {
		t.Helper()
		s.relay.promisedGrace = grace
		var version, before, after int
		upstream.set(func() {
			upstream.version++
			upstream.promises, upstream.keeps = promises, keeps
			version, before = upstream.version, upstream.shorts
		})
		at, err := s.Current(t.Context())
		if err != nil || at != storage.Revision(version) {
			t.Fatalf("version %d, %v, want %d", at, err, version)
		}
		if err := s.follows.Wait(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		s.progress.mu.Lock()
		chasing := s.progress.chasing
		s.progress.mu.Unlock()
		if chasing != nil {
			<-chasing // it keeps the grace that it has been given
		}
		upstream.set(func() { after = upstream.shorts })
		return after - before
	}
	for range 3 {
		if shorts := read(true, true, time.Hour); shorts != 0 {
			t.Errorf("%d watches were opened although the stream brings the version", shorts)
		}
	}
	if shorts := read(true, false, time.Millisecond); shorts != 1 {
		t.Errorf("after a promise that was not kept, %d watches were opened, want 1", shorts)
	}
	if shorts := read(false, false, time.Hour); shorts != 1 {
		t.Errorf("without a promise, %d watches were opened, want 1", shorts)
	}
	if made := s.relay.counts.chases.Load(); made != 2 {
		t.Errorf("%d watches are counted", made)
	}
}
