package relay

import (
	"testing"
	"time"
)

// TestStoppingUpstreamIsNotSilent: a server that stops ends watches before they have brought anything, which says nothing.
func TestStoppingUpstreamIsNotSilent(t *testing.T) {
	upstream := &hanging{version: 7, events: make(chan string)}
	s, _ := sourceOf(t, upstream)
	upstream.set(func() { upstream.version++ })
	if _, err := s.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.progress.mu.Lock()
	chasing := s.progress.chasing
	s.progress.mu.Unlock()
	if chasing != nil {
		<-chasing
	}
	if silent, _ := s.silence.is(); silent || s.silence.wasFound() || s.relay.lateBookmarks.Load() {
		t.Error("the upstream counts as one that sends no bookmarks")
	}
	upstream.set(func() { upstream.unchanged = true })
	at, err := s.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if reached, err := s.awaitUnlessSilent(t.Context(), at, time.Hour); !reached || err != nil {
		t.Errorf("the cache does not get to version %d: %v", at, err)
	}
	if _, hears := s.silence.is(); !hears {
		t.Error("the upstream counts as one that may be silent, after a bookmark")
	}
}

// TestPromiseKeptByAChangeSaysNothing of what the upstream says when there is none: it may be a relay that does not know yet that its own
// upstream is silent.
func TestPromiseKeptByAChangeSaysNothing(t *testing.T) {
	upstream := &hanging{version: 7, promises: true, events: make(chan string)}
	s, _ := sourceOf(t, upstream)
	s.relay.promisedGrace = time.Hour // only the stream is to bring the version
	keep := func(version int, event string) {
		t.Helper()
		upstream.set(func() { upstream.version = version })
		if _, err := s.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.progress.mu.Lock()
		chasing := s.progress.chasing
		s.progress.mu.Unlock()
		if chasing == nil {
			t.Fatal("the relay does not wait for what was promised")
		}
		upstream.events <- event
		<-chasing
	}
	keep(8, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"1","resourceVersion":"8"}}}`+"\n")
	if _, hears := s.silence.is(); hears {
		t.Error("after a change the upstream counts as one that says how far the stream is")
	}
	keep(9, bookmark(9, ""))
	if _, hears := s.silence.is(); !hears {
		t.Error("after a bookmark the upstream counts as one that may be silent")
	}
}

// TestAgeOfASilentResource does not count, also while it is found out anew whether the upstream is silent, until the upstream is known
// to have changes that the cache lacks.
func TestAgeOfASilentResource(t *testing.T) {
	s, now := sourceOf(t, &hanging{version: 7, unchanged: true, events: make(chan string)})
	s.relay.contact.last.Store(now.read().UnixNano())
	s.silence.noteSilent()
	s.stream.ended()
	now.advance(2 * s.relay.opts.MaxStaleness)
	s.relay.contact.last.Store(now.read().UnixNano())
	expired := func() {
		s.silence.mu.Lock()
		defer s.silence.mu.Unlock()
		s.silence.until = time.Now()
	}
	ready := func(want bool, when string) {
		t.Helper()
		if err := s.relay.CheckUpstream(t.Context()); (err == nil) != want {
			t.Errorf("%s: %v", when, err)
		}
		if declared := declaredBy(t, s.relay); (declared == "0.000") != want {
			t.Errorf("%s: the relay declares %s seconds", when, declared)
		}
	}
	ready(true, "while the upstream is believed to be silent")
	expired()
	ready(true, "when that has to be found out anew")
	s.silence.noteBehind()
	ready(false, "when the upstream has changes")
	s.silence.noteSilent()
	s.silence.noteHeard()
	ready(false, "when the upstream is not silent any more")
}

// TestWaitsEndWhenTheUpstreamIsSilent, those that have begun and those that begin later, also if that was found out before.
func TestWaitsEndWhenTheUpstreamIsSilent(t *testing.T) {
	var q silence
	for range 2 {
		waits := q.begins()
		if waits.Err() != nil {
			t.Fatal("the upstream is silent before that is found")
		}
		q.noteSilent()
		<-waits.Done()
		<-q.begins().Done()
		q.noteHeard()
	}
}
