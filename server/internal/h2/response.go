package h2

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// stageSize is how many bytes of small writes are collected before they become
	// a frame.
	stageSize = 4 << 10
	// tryWriteFlush is how many bytes of TryWrite are collected before they begin
	// to be written, so that there is room for more.
	tryWriteFlush = outputLimit / 2
)

// response is the http.ResponseWriter of a stream. Besides what net/http's writers
// can do, it writes several slices at once (WriteBuffers) and without waiting
// (TryWrite). Only the handler's goroutine uses it, except for the deadlines, which
// any goroutine may set while the handler runs.
type response struct {
	st     *stream
	method string
	header http.Header
	fields *fieldList // by WriteHeader, until they are sent
	stage  *buffer    // small writes that are collected
	code   int        // 0 until WriteHeader
	length int64      // the content-length that the handler has set; -1: none
	wrote  int64
	sent   bool // the header fields have been sent
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	if w.code != 0 {
		return
	}
	if code < 100 || code > 999 {
		panic(fmt.Sprintf("h2: invalid status code %d", code)) // as net/http does
	}
	if code < 200 {
		w.writeInterim(code)
		return
	}
	w.code, w.length = code, -1
	w.fields = getFields()
	w.fields.addHeader(w.header)
	if value := w.header.Get("Content-Length"); value != "" {
		if n, err := strconv.ParseUint(value, 10, 63); err == nil {
			w.length = int64(n)
			w.fields.add("content-length", strconv.FormatUint(n, 10))
		}
	}
	if strings.EqualFold(w.header.Get("Connection"), "close") {
		w.st.conn.drain()
	}
}

// writeInterim sends an interim (1xx) answer (RFC 9110 section 15.2).
func (w *response) writeInterim(code int) {
	c := w.st.conn
	fields := getFields()
	defer fields.put()
	if code != http.StatusContinue {
		fields.addHeader(w.header)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.err == nil && code != http.StatusSwitchingProtocols {
		w.st.appendHeaders(code, fields, false)
		c.write()
	}
}

// bodyAllowed says whether an answer with this status has a body.
func bodyAllowed(code int) bool {
	return code != http.StatusNoContent && code != http.StatusNotModified
}

// Write implements http.ResponseWriter. Small writes are collected until Flush or
// the handler's end.
func (w *response) Write(p []byte) (int, error) {
	if err := w.countBytes(len(p)); err != nil {
		return 0, err
	}
	staged := 0
	if w.stage != nil {
		staged = len(w.stage.bytes)
	}
	if staged+len(p) <= stageSize {
		if w.stage == nil {
			w.stage = getBuffer()
		}
		w.stage.bytes = append(w.stage.bytes, p...)
		return len(p), nil
	}
	if err := w.push(false, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// WriteBuffers writes all parts as if they were joined. It copies them once, into
// the connection's buffer, and does not keep them. It needs no Flush after it.
func (w *response) WriteBuffers(list ...[]byte) (int64, error) {
	p := join(list...)
	n := p.left
	if err := w.countBytes(n); err != nil {
		return 0, err
	}
	if err := w.push(false, list...); err != nil {
		return 0, err
	}
	return int64(n), nil
}

// Connection returns a value that is the same for all answers on one connection,
// for callers that write many answers with TryWrite. Its Push sends what they have
// written. Push blocks while the client does not read from the connection; an error
// of it is returned by the next write of each answer. It may be called at any time.
func (w *response) Connection() interface{ Push() } { return w.st.conn }

// TryWrite is WriteBuffers if all parts can be sent without waiting, neither for
// the windows nor for other streams. Otherwise it returns false and has written
// nothing. It does not send: Push does, or the next write on the connection. Header
// fields must have been flushed before. Another goroutine than the handler's may
// call it, as long as only one goroutine at a time uses the answer.
func (w *response) TryWrite(list ...[]byte) bool {
	if !w.sent || w.stage != nil || w.length >= 0 || w.method == http.MethodHead || !bodyAllowed(w.code) {
		return false
	}
	p := join(list...)
	n := p.left
	c := w.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.err != nil || w.st.room(n) < n {
		return false
	}
	w.st.appendData(&p, n, false)
	w.wrote += int64(n)
	if c.out.len() >= tryWriteFlush {
		c.writeSoon()
	}
	return true
}

// Push sends what has been appended. If another goroutine is writing, it waits
// until that one has taken the bytes, which makes room: it would cost much more to
// have each of many streams wait, as they must when TryWrite fails.
func (c *conn) Push() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitBelow(1)
}

// countBytes writes the header if the handler has not, and counts n bytes of the
// body.
func (w *response) countBytes(n int) error {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(w.code) {
		return http.ErrBodyNotAllowed
	}
	w.wrote += int64(n)
	if w.length >= 0 && w.wrote > w.length {
		return http.ErrContentLength
	}
	return nil
}

// push sends the header, what was collected, and then list. Of an answer to HEAD it
// sends only the header.
func (w *response) push(end bool, list ...[]byte) error {
	p := join(list...)
	if w.stage != nil {
		p = join(append([][]byte{w.stage.bytes}, list...)...)
	}
	err := w.sendHeader(p, end)
	if w.method == http.MethodHead {
		p = parts{}
	}
	if err == nil && (p.left > 0 || end) {
		err = w.st.send(p, end)
	}
	if w.stage != nil {
		w.stage.put()
		w.stage = nil
	}
	return err
}

// sendHeader appends the header, if that has not been done, for a body that begins
// with p and, if end is set, ends with it.
func (w *response) sendHeader(p parts, end bool) error {
	if w.sent {
		return nil
	}
	w.sent = true
	f := w.fields
	w.fields = nil
	defer f.put()
	if end && w.length < 0 && bodyAllowed(w.code) && (w.wrote > 0 || w.method != http.MethodHead) {
		f.add("content-length", strconv.FormatInt(w.wrote, 10))
	}
	if !f.hasType && p.left > 0 && w.header.Get("Content-Encoding") == "" {
		f.add("content-type", http.DetectContentType(p.list[0]))
	}
	if !f.hasDate {
		f.add("date", date())
	}
	st := w.st
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitBelow(outputLimit) // a client may send requests whose answers it does not read
	if st.err != nil {
		return st.err
	}
	st.headersSent = true
	closes := end && (p.left == 0 || w.method == http.MethodHead)
	st.appendHeaders(w.code, f, closes)
	if closes {
		st.ended()
	}
	return nil
}

// FlushError sends what has been written; http.ResponseController calls it.
func (w *response) FlushError() error {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if err := w.push(false); err != nil {
		return err
	}
	c := w.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write() // the header, if there was no data
	return w.st.err
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() } // the next write reports it

// SetReadDeadline limits how long reading the body may take; it fails with
// os.ErrDeadlineExceeded then. The zero time means no limit.
func (w *response) SetReadDeadline(t time.Time) error {
	c := w.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.body != nil {
		w.st.body.readable.setDeadline(t)
	}
	return nil
}

// SetWriteDeadline limits how long writes may wait for the client. After it they
// fail with os.ErrDeadlineExceeded, and the stream is reset.
func (w *response) SetWriteDeadline(t time.Time) error {
	c := w.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	w.st.canSend.setDeadline(t)
	return nil
}

// EnableFullDuplex does nothing: HTTP/2 always is.
func (w *response) EnableFullDuplex() error { return nil }

var errTooShort = errors.New("h2: the handler wrote less than the content-length that it had set")

// end completes the answer after the handler has returned.
func (w *response) end() {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.length >= 0 && w.wrote < w.length && w.method != http.MethodHead && bodyAllowed(w.code) {
		w.st.fail(errTooShort)
		return
	}
	_ = w.push(true) // if it fails, the client is gone
}

// release returns the answer's buffers to their pools.
func (w *response) release() {
	if w.fields != nil {
		w.fields.put()
		w.fields = nil
	}
	if w.stage != nil {
		w.stage.put()
		w.stage = nil
	}
}
