package request

import (
	"bytes"
	"context"
	"iter"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// Record collects what the server logs and counts when a request is done. It
// belongs to the goroutine that serves the request, or, on a watch, to the one
// that owns the stream.
type Record struct {
	User auth.User
	// Impersonation are the rights by which the user of the request may be User, all of
	// one of the alternatives; nil if it is that user.
	Impersonation []iter.Seq[auth.Attributes]

	Info    *Info // nil unless the request is for a resource
	Err     error // the cause of a 5xx answer
	Known   bool  // the log has said so of all such requests, or will: Err is none that operators look for
	Code    int
	Written int64
	// Task is the request's handler: what waits for something says so.
	Task runqueue.Task
	// Body is asked before the request's body is kept; nil allows everything.
	Body BodyAdmission
	// Audit is told what becomes of the request; nil if it is not audited.
	Audit Audit
	// Detached is set before the handler returns if the request goes on after that: End is
	// called later, by another goroutine, and the handler's must not use the record any more.
	Detached bool

	atEnd func() // nil: nothing

	mu       sync.Mutex // guards what follows, and calls of Audit.Annotate and Audit.Took
	warnings []string
	// early are the annotations of what comes before the audit: the authentication.
	early [][2]string
	begun bool
}

// BeginAudit says by what the request is audited, if it is, when its user is known. It is called
// once; audit is nil if the request is not audited.
func (c *Record) BeginAudit(audit Audit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if audit != nil {
		c.Audit = audit
		for _, annotation := range c.early {
			audit.Annotate(annotation[0], annotation[1])
		}
	}
	c.early, c.begun = nil, true
}

// AtEnd has f called when the request has ended, before what AtEnd was called with earlier.
func (c *Record) AtEnd(f func()) {
	if next := c.atEnd; next != nil {
		c.atEnd = func() {
			defer next()
			f()
		}
		return
	}
	c.atEnd = f
}

// End is called once, when the request has ended.
func (c *Record) End() {
	if f := c.atEnd; f != nil {
		c.atEnd = nil
		f()
	}
}

// Warn implements reporter.Reporter: the warnings are sent with the answer.
func (c *Record) Warn(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings = append(c.warnings, text)
}

// Annotate implements reporter.Reporter.
func (c *Record) Annotate(key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.Audit != nil:
		c.Audit.Annotate(key, value)
	case !c.begun:
		c.early = append(c.early, [2]string{key, value})
	}
}

// KeepsTimes implements reporter.Timer.
func (c *Record) KeepsTimes() bool { return c.Audit != nil && c.Audit.KeepsTimes() }

// Took implements reporter.Timer.
func (c *Record) Took(part reporter.Part, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Audit != nil {
		c.Audit.Took(part, d)
	}
}

// Measure begins a part of the request.
func (c *Record) Measure(part reporter.Part) reporter.Measurement { return reporter.Begin(c, part) }

// MeasureAnswer begins the encoding of the answer that is written to w.
func MeasureAnswer(w http.ResponseWriter) reporter.Measurement {
	if recorder, ok := w.(*Recorder); ok {
		return recorder.record.Measure(reporter.Serialization)
	}
	return reporter.Measurement{}
}

// addWarnings puts the warnings that there are into an answer that begins.
func (c *Record) addWarnings(w http.ResponseWriter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.warnings) > 0 {
		AddWarnings(w, c.warnings...)
		c.warnings = nil
	}
}

// Audit writes the audit log of one request.
type Audit interface {
	// Authorized is called with the decision about the request.
	Authorized(allowed bool, reason string)
	// Annotate adds an annotation to the events from then on. The first value of a key
	// counts.
	Annotate(key, value string)
	// Body is called with the body of the request, which nothing modifies later.
	Body(contentType string, body []byte)
	// Failed is called with the Status of an error before that is answered.
	Failed(answer *metav1.Status)
	// Started is called with the status code when an answer begins.
	Started(code int)
	// KeepsResponse reports whether Wrote must be called.
	KeepsResponse() bool
	// Wrote is called with each part of the answer, which belongs to the caller.
	Wrote(p []byte)
	// KeepsTimes reports whether Took must be called. It is called concurrently.
	KeepsTimes() bool
	// Took adds what a part of the request has taken.
	Took(part reporter.Part, d time.Duration)
}

// BodyAdmission bounds the bodies that a server keeps, and the requests that it works
// on once their bodies are there.
type BodyAdmission interface {
	// Reserve is called before n more bytes of the body are kept in memory. An error
	// refuses the request.
	Reserve(n int) error
	// Release is called when n bytes that were reserved are no longer kept.
	Release(n int)
	// Complete is called when the body has been read. An error refuses the request.
	Complete() error
}

// Slot is told of writes to the client that may block.
type Slot interface {
	BeginWrite()
	// EndWrite may block. An error ends the answer.
	EndWrite() error
}

// recordContext is a context with the values of a request that others look for: its
// Reporter and its Task. Two contexts of package context would be two allocations.
type recordContext struct {
	context.Context
	record *Record
}

// Value implements context.Context.
func (c *recordContext) Value(key any) any {
	switch key {
	case reporter.Key:
		return reporter.Reporter(c.record)
	case runqueue.Key:
		return &c.record.Task
	}
	return c.Context.Value(key)
}

// WithRecord returns a context that carries the record of its request.
func WithRecord(ctx context.Context, record *Record) context.Context {
	return &recordContext{ctx, record}
}

// RecordFrom returns the record of a request; without one, a record that is
// not read.
func RecordFrom(ctx context.Context) *Record {
	if record, ok := reporter.From(ctx).(*Record); ok {
		return record
	}
	return &Record{}
}

// Recorder notes the status and the size of an answer in a Record.
type Recorder struct {
	answer      http.ResponseWriter
	record      *Record
	beforeError func()
	slot        Slot
	buffered    int64 // how much the server collects
	flushed     bool
}

// NewRecorder returns a ResponseWriter for a request that passes everything on to w.
func NewRecorder(w http.ResponseWriter, r *http.Request, record *Record) *Recorder {
	buffered := bufferedWrite
	if r.ProtoMajor == 1 {
		buffered = bufferedWriteHTTP1
	}
	return &Recorder{answer: w, record: record, buffered: int64(buffered)}
}

// BeforeError has f called before an error is answered, a 4xx or a 5xx.
func (w *Recorder) BeforeError(f func()) { w.beforeError = f }

// GuardWrites puts the writes that may block between the slot's two calls.
func (w *Recorder) GuardWrites(slot Slot) { w.slot = slot }

// How much servers of HTTP collect before they write: so short an answer is sent after its
// handler has returned, unless that flushes it. In HTTP/1.1, net/http adds the header to what is
// longer, and writes both when they have 4 KiB.
const (
	bufferedWrite      = 4 << 10
	bufferedWriteHTTP1 = 2 << 10
)

// Unwrap lets http.ResponseController reach deadlines.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.answer }

// Header implements http.ResponseWriter.
func (w *Recorder) Header() http.Header { return w.answer.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *Recorder) WriteHeader(code int) {
	if w.record.Code == 0 {
		w.record.Code = code
		w.record.addWarnings(w.answer)
		if code >= http.StatusBadRequest && w.beforeError != nil {
			w.beforeError()
		}
		if w.record.Audit != nil {
			w.record.Audit.Started(code)
		}
	}
	w.answer.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *Recorder) Write(p []byte) (int, error) {
	guarded := w.begin(len(p))
	if w.record.Audit != nil && w.record.Audit.KeepsResponse() {
		w.record.Audit.Wrote(p)
	}
	writing := w.record.Measure(reporter.ResponseWrite)
	n, err := w.answer.Write(p)
	writing.End()
	return n, w.end(guarded, int64(n), err)
}

// WriteBuffers writes all parts as if they were joined, without copying them where the
// server can do that.
func (w *Recorder) WriteBuffers(parts ...[]byte) (int64, error) {
	gather, ok := w.answer.(interface {
		WriteBuffers(parts ...[]byte) (int64, error)
	})
	if !ok {
		n, err := w.Write(bytes.Join(parts, nil))
		return int64(n), err
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	guarded := w.begin(size)
	if w.record.Audit != nil && w.record.Audit.KeepsResponse() {
		for _, part := range parts {
			w.record.Audit.Wrote(part)
		}
	}
	writing := w.record.Measure(reporter.ResponseWrite)
	n, err := gather.WriteBuffers(parts...)
	writing.End()
	return n, w.end(guarded, n, err)
}

// FlushError implements flushing for http.ResponseController. A flush may block however
// little has been written, while the client keeps the window of its connection shut.
func (w *Recorder) FlushError() error {
	w.flushed = true
	if w.slot != nil {
		w.slot.BeginWrite()
	}
	writing := w.record.Measure(reporter.ResponseWrite)
	err := http.NewResponseController(w.answer).Flush()
	writing.End()
	return w.end(w.slot != nil, 0, err)
}

// begin precedes a write of n bytes, and reports whether it is guarded.
func (w *Recorder) begin(n int) bool {
	if w.record.Code == 0 {
		w.record.Code = http.StatusOK
		w.record.addWarnings(w.answer)
		if w.record.Audit != nil {
			w.record.Audit.Started(http.StatusOK)
		}
	}
	if w.slot == nil || !w.flushed && w.record.Written+int64(n) <= w.buffered {
		return false
	}
	w.slot.BeginWrite()
	return true
}

// end follows a write of which n bytes were taken, and returns its error, or why the
// answer cannot go on.
func (w *Recorder) end(guarded bool, n int64, err error) error {
	w.record.Written += n
	if !guarded {
		return err
	}
	defer w.record.Measure(reporter.QueueWait).End() // for a seat that was given back meanwhile
	if e := w.slot.EndWrite(); err == nil {
		err = e
	}
	return err
}
