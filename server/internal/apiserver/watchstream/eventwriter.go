package watchstream

import "net/http"

// EventWriter is where the encoded events of a stream go. The stream's owner calls
// it, one call at a time; all calls may block.
type EventWriter interface {
	// Begin sends what precedes the first event.
	Begin(contentType string)
	// Write sends encoded events; exactly one if Single says so.
	Write(events []byte) error
	// Single reports whether each event needs a Write of its own.
	Single() bool
	// Flush makes sure that what was written is on its way.
	Flush() error
}

// bodyWriter writes the events of a watch over plain HTTP: to a body that does not
// end.
type bodyWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Begin implements EventWriter.
func (b *bodyWriter) Begin(contentType string) {
	b.w.Header().Set("Content-Type", contentType)
	b.w.Header().Set("Cache-Control", "no-cache, private")
	b.w.WriteHeader(http.StatusOK)
}

// Single implements EventWriter.
func (b *bodyWriter) Single() bool { return false }

// Write implements EventWriter.
func (b *bodyWriter) Write(events []byte) error {
	_, err := b.w.Write(events)
	return err
}

// Flush implements EventWriter.
func (b *bodyWriter) Flush() error { return b.control.Flush() }

// gatherer writes several slices as if they were joined.
type gatherer interface {
	WriteBuffers(parts ...[]byte) (int64, error)
}

// gathererOf finds out whether a writer, behind its wrappers, takes several slices
// at once.
func gathererOf(w http.ResponseWriter) gatherer {
	for {
		switch t := w.(type) {
		case gatherer:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil
		}
	}
}
