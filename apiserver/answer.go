package apiserver

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// writeSize is how much is collected before it is written to a client: large
// enough that TLS and system calls are a small part of the cost, small enough
// that many lists at once need little memory.
const writeSize = 64 << 10

var answerBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, compressFrom)
	return &b
}}

// answer writes a long body in pieces of writeSize. Headers go out with the
// first piece, so that up to then an error can still become a Status. A short
// body is written at once, with its length. It is not safe for concurrent use.
type answer struct {
	w           http.ResponseWriter
	r           *http.Request
	ctx         context.Context
	guard       *guarded
	dog         *watchdog
	contentType string
	buf         *[]byte
	started     bool
	sink        io.Writer // w, or z
	z           *gzip.Writer
	err         error
}

func (s *Server) newAnswer(w http.ResponseWriter, r *http.Request, contentType string) *answer {
	a := &answer{w: w, r: r, ctx: r.Context(), dog: s.watchdog, contentType: contentType, sink: w}
	a.buf = answerBuffers.Get().(*[]byte)
	a.guard = a.dog.guard(w)
	return a
}

// Write collects p. Its error is the connection's or the context's, and final.
func (a *answer) Write(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	limit := writeSize
	if !a.started {
		limit = compressFrom
	}
	if len(*a.buf)+len(p) > limit && len(*a.buf) > 0 {
		a.flush()
	}
	if a.started && len(p) > writeSize {
		a.write(p)
		return len(p), a.err
	}
	*a.buf = append(*a.buf, p...)
	return len(p), a.err
}

func (a *answer) flush() {
	if !a.started {
		a.start()
	}
	a.write(*a.buf)
	*a.buf = (*a.buf)[:0]
}

// start sends the headers of a body that is long.
func (a *answer) start() {
	a.started = true
	a.setHeaders()
	if readsGzip(a.r) {
		startGzip(a.w)
		a.z = borrowGzip(a.w)
		a.sink = a.z
	}
	a.w.WriteHeader(http.StatusOK)
}

func (a *answer) setHeaders() {
	a.w.Header().Set("Content-Type", a.contentType)
	a.w.Header().Set("Cache-Control", "no-cache, private")
}

func (a *answer) write(p []byte) {
	if a.err = a.ctx.Err(); a.err != nil || a.r.Method == http.MethodHead {
		return
	}
	a.guard.begin()
	_, a.err = a.sink.Write(p)
	a.guard.end()
}

// finish writes what is left. It must be followed by release.
func (a *answer) finish() error {
	if a.err != nil {
		return a.err
	}
	if !a.started {
		a.setHeaders()
		a.started = true
		a.w.Header().Set("Content-Length", strconv.Itoa(len(*a.buf)))
		a.w.WriteHeader(http.StatusOK)
	}
	a.write(*a.buf)
	if a.z != nil && a.err == nil {
		a.guard.begin()
		a.err = a.z.Close()
		a.guard.end()
	}
	return a.err
}

// release gives everything back, and passes err on. If the body has already
// begun, an error can only be told by breaking the stream off, so that the
// client does not take a part for the whole.
func (a *answer) release(err error) error {
	a.dog.release(a.guard)
	if cap(*a.buf) <= 4*compressFrom {
		*a.buf = (*a.buf)[:0]
		answerBuffers.Put(a.buf)
	}
	if a.z != nil {
		gzipWriters.Put(a.z)
	}
	if err != nil && a.started {
		panic(http.ErrAbortHandler)
	}
	return err
}

// WriteString is Write without a copy for short strings.
func (a *answer) WriteString(s string) (int, error) {
	if a.err == nil && len(*a.buf)+len(s) <= writeSize {
		*a.buf = append(*a.buf, s...)
		return len(s), nil
	}
	return a.Write([]byte(s))
}
