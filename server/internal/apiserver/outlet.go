package apiserver

import "net/http"

// outlet is where the events of a watch go.
type outlet interface {
	// begin sends what precedes the first event.
	begin(contentType string)
	// write sends encoded events; exactly one if single says so.
	write(events []byte) error
	single() bool
	// flush makes sure that what was written is on its way.
	flush() error
}

// body is the outlet of a watch over plain HTTP: a body that does not end.
type body struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// begin implements outlet.
func (b *body) begin(contentType string) {
	b.w.Header().Set("Content-Type", contentType)
	b.w.Header().Set("Cache-Control", "no-cache, private")
	b.w.WriteHeader(http.StatusOK)
}

// single implements outlet.
func (b *body) single() bool { return false }

// write implements outlet.
func (b *body) write(events []byte) error {
	_, err := b.w.Write(events)
	return err
}

// flush implements outlet.
func (b *body) flush() error {
	return b.control.Flush()
}
