package request

import (
	"context"
	"net/http"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Record collects what the server logs and counts when a request is done. It
// belongs to the goroutine that serves the request, or, on a watch, to the one
// that owns the stream.
type Record struct {
	User    auth.User
	Info    *Info // nil unless the request is for a resource
	Err     error // the cause of a 5xx answer
	Code    int
	Written int64
}

type recordKey struct{}

// WithRecord returns a context that carries the record of its request.
func WithRecord(ctx context.Context, record *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, record)
}

// RecordFrom returns the record of a request; without one, a record that is
// not read.
func RecordFrom(ctx context.Context) *Record {
	if record, ok := ctx.Value(recordKey{}).(*Record); ok {
		return record
	}
	return &Record{}
}

// Recorder notes the status and the size of an answer in a Record.
type Recorder struct {
	answer http.ResponseWriter
	record *Record
}

// NewRecorder returns a ResponseWriter that passes everything on to w.
func NewRecorder(w http.ResponseWriter, record *Record) *Recorder {
	return &Recorder{answer: w, record: record}
}

// Unwrap lets http.ResponseController reach flushing and deadlines.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.answer }

// Header implements http.ResponseWriter.
func (w *Recorder) Header() http.Header { return w.answer.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *Recorder) WriteHeader(code int) {
	if w.record.Code == 0 {
		w.record.Code = code
	}
	w.answer.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *Recorder) Write(p []byte) (int, error) {
	if w.record.Code == 0 {
		w.record.Code = http.StatusOK
	}
	n, err := w.answer.Write(p)
	w.record.Written += int64(n)
	return n, err
}
