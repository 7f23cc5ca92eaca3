package watchstream

import (
	"net/http"
	"time"
)

// EventWriter is where the encoded events of a stream go. The stream's owner calls
// it, one call at a time; all calls may block.
type EventWriter interface {
	// Begin sends what precedes the first event.
	Begin(contentType string, coalesced bool)
	// Write sends encoded events; exactly one if Single says so.
	Write(events []byte) error
	// Single reports whether each event needs a Write of its own.
	Single() bool
	// Flush makes sure that what was written is on its way.
	Flush() error
}

// HistoryHeader says, as Coalesced, that a watch may begin with the latest change of each
// object in place of all changes since its version. Relays need to know: what they have
// received is then right for those of their clients only that had the state at that version.
const (
	HistoryHeader = "Levelwire-History"
	Coalesced     = "coalesced"
	// Exact in a request ends the watch before it would go on with less than every change,
	// so that the next one says so.
	Exact = "exact"
	// Retained in a request lists, at one version, also what the store has compacted, if a cache
	// keeps it: a relay whose clients come with old versions begins from there.
	Retained = "retained"
)

// bodyWriter writes the events of a watch over plain HTTP: to a body that does not
// end.
type bodyWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// timeout is how long one call may block; 0 where the connection sees to that.
	// Package h2 does. Over net/http's HTTP/2 a client can keep a stream's window shut
	// for as long as the connection lives.
	timeout time.Duration
}

// Begin implements EventWriter.
func (b *bodyWriter) Begin(contentType string, coalesced bool) {
	b.w.Header().Set("Content-Type", contentType)
	b.w.Header().Set("Cache-Control", "no-cache, private")
	if coalesced {
		b.w.Header().Set(HistoryHeader, Coalesced)
	}
	b.w.WriteHeader(http.StatusOK)
}

// Single implements EventWriter.
func (b *bodyWriter) Single() bool { return false }

// Write implements EventWriter.
func (b *bodyWriter) Write(events []byte) error {
	b.setDeadline()
	_, err := b.w.Write(events)
	return err
}

// Flush implements EventWriter. It ends the time of the writes before: net/http's
// HTTP/2 resets a stream at its write deadline even if nothing is being written.
func (b *bodyWriter) Flush() error {
	b.setDeadline()
	err := b.control.Flush()
	if b.timeout > 0 {
		_ = b.control.SetWriteDeadline(time.Time{})
	}
	return err
}

// setDeadline bounds the next call. An error means that there are no deadlines, in
// tests.
func (b *bodyWriter) setDeadline() {
	if b.timeout > 0 {
		_ = b.control.SetWriteDeadline(time.Now().Add(b.timeout))
	}
}

// gatherer writes several slices as if they were joined.
type gatherer interface {
	WriteBuffers(parts ...[]byte) (int64, error)
}

// gathererOf finds out whether a writer takes several slices at once. If the writer
// wraps others, the innermost must be able to, and the outermost that can is returned.
func gathererOf(w http.ResponseWriter) gatherer {
	var outermost gatherer
	for {
		t, ok := w.(gatherer)
		if ok && outermost == nil {
			outermost = t
		}
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		switch {
		case wraps:
			w = wrapper.Unwrap()
		case ok:
			return outermost
		default:
			return nil
		}
	}
}
