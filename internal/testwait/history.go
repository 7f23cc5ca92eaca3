package testwait

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// History is all that has happened, in order: the events of a watch, the calls of a handler, the lines
// of a log. The zero value is one in which nothing has happened. It is for concurrent use.
type History[E any] struct {
	mu      sync.Mutex
	events  []E
	end     error         // why nothing will follow; nil if something may
	changed chan struct{} // closed with the next change, if one waits for it
}

// Add adds an event.
func (h *History[E]) Add(event E) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
	h.announce()
}

// End says that no event follows, and why: a wait for one fails at once.
func (h *History[E]) End(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end = why; why == nil {
		h.end = errors.New("it was ended")
	}
	h.announce()
}

// Seen returns what has happened so far.
func (h *History[E]) Seen() []E {
	seen, _, _ := h.read()
	return seen
}

func (h *History[E]) announce() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// read returns what has happened, what is closed when there is more, and why nothing will follow.
func (h *History[E]) read() (seen []E, changed <-chan struct{}, end error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.events[:len(h.events):len(h.events)], h.changed, h.end
}

// Stream is where events come from, such as a watch of package client.
type Stream[E any] interface {
	Next() (E, error)
	Close()
}

// Follow collects the events of a stream from now on, until it fails or the test ends: a test
// follows first, and then does what it waits for.
func Follow[E any](t testing.TB, from Stream[E]) *History[E] {
	t.Helper()
	h, done := &History[E]{}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			event, err := from.Next()
			if err != nil {
				h.End(err)
				return
			}
			h.Add(event)
		}
	}()
	t.Cleanup(func() { from.Close(); <-done })
	return h
}

// Events waits until what has happened is as wanted, and returns it up to the event that made it so.
// holds is asked about every beginning of the history, the shortest first, which is the first event:
// so it sees each state that was there, also if the next one has followed.
func Events[E any](t testing.TB, what string, in *History[E], holds func(seen []E) bool) []E {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	for judged := 0; ; {
		seen, changed, end := in.read()
		for ; judged < len(seen); judged++ {
			if until := seen[: judged+1 : judged+1]; holds(until) {
				return until
			}
		}
		if end != nil {
			t.Fatalf("%s: there is nothing more to wait for: %v; seen: %s", what, end, listed(seen))
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("waited %v in vain: %s; seen: %s", Limit, what, listed(seen))
		}
	}
}

// Last makes a condition on a history of one on its last event.
func Last[E any](is func(E) bool) func(seen []E) bool {
	return func(seen []E) bool { return is(seen[len(seen)-1]) }
}

// mostListed is how many events a failure shows, the last ones.
const mostListed = 50

func listed[E any](events []E) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d events", len(events))
	if from := len(events) - mostListed; from > 0 {
		fmt.Fprintf(&text, ", of which the last %d are", mostListed)
		events = events[from:]
	}
	for _, event := range events {
		fmt.Fprintf(&text, "\n\t%+v", event)
	}
	return text.String()
}
