package encoding

import (
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/levelwire/levelwire/server/internal/gzipblock"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// WriteSize is how much is collected before it is written to a client: large
// enough that TLS and system calls are a small part of the cost, small enough
// that many lists at once need little memory.
const WriteSize = 64 << 10

var answerBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, CompressFrom)
	return &b
}}

// Answer writes a long body in pieces of WriteSize. Headers go out with the first
// piece, so that until then an error can still become a Status. A short body is
// written at once, with its length; a long one is compressed if the client accepts
// that. It is not safe for concurrent use.
type Answer struct {
	w           http.ResponseWriter
	r           *http.Request
	contentType string
	task        *runqueue.Task // lets others run now and then
	writes      int            // since it last was asked to
	buf         *[]byte        // what goes out next
	started     bool
	z           *gzipblock.Writer // compresses into buf; nil: nothing is compressed
	err         error
}

// NewAnswer returns an answer to a request, whose context ends it.
func NewAnswer(w http.ResponseWriter, r *http.Request, contentType string) *Answer {
	return &Answer{w: w, r: r, contentType: contentType, task: runqueue.FromContext(r.Context()), buf: answerBuffers.Get().(*[]byte)}
}

// writesPerTurn is how many small pieces, such as parts of an item, are written before the
// time is looked at: that takes as long as copying one.
const writesPerTurn = 32

// Write adds p to the body. Its error is the connection's or the context's, and final.
func (a *Answer) Write(p []byte) (int, error) {
	if a.writes++; a.writes >= writesPerTurn {
		a.writes = 0
		a.task.Yield()
	}
	a.expect(len(p))
	if a.z != nil && a.err == nil {
		_, a.err = a.z.Write(p)
	} else {
		a.emit(p)
	}
	return len(p), a.err
}

// expect announces that at least n bytes follow, which decides whether the body is
// long.
func (a *Answer) expect(n int) {
	if a.err == nil && !a.started && len(*a.buf)+n > CompressFrom {
		a.start()
	}
}

// compresses reports whether what is written from now on is compressed.
func (a *Answer) compresses() bool { return a.z != nil }

// join adds a block to a body that is being compressed.
func (a *Answer) join(b gzipblock.Block) error {
	a.task.Yield()
	if a.err == nil {
		a.err = a.z.Join(b)
	}
	return a.err
}

// fill adds n bytes to a body that is not compressed. write is given that much
// of the answer's own buffer if it has room.
func (a *Answer) fill(n int, write func(room []byte) error) error {
	a.task.Yield()
	a.expect(n)
	if a.err != nil {
		return a.err
	}
	if cap(*a.buf)-len(*a.buf) < n {
		a.flush()
	}
	if a.err != nil {
		return a.err
	}
	filled := len(*a.buf)
	*a.buf = slices.Grow(*a.buf, n)
	if err := write((*a.buf)[filled : filled+n]); err != nil {
		return err
	}
	*a.buf = (*a.buf)[:filled+n]
	if len(*a.buf) >= WriteSize && a.started {
		a.flush()
	}
	return a.err
}

// emit collects what goes out as it is.
func (a *Answer) emit(p []byte) {
	if a.err != nil {
		return
	}
	limit := WriteSize
	if !a.started {
		limit = CompressFrom
	}
	if len(*a.buf)+len(p) > limit && len(*a.buf) > 0 {
		a.flush()
	}
	if a.started && len(p) > WriteSize {
		a.write(p)
		return
	}
	*a.buf = append(*a.buf, p...)
}

func (a *Answer) flush() {
	if !a.started {
		a.start()
	}
	a.write(*a.buf)
	*a.buf = (*a.buf)[:0]
}

// emitter is where the compressor of an answer writes to.
type emitter struct{ answer *Answer }

// Write implements io.Writer.
func (e emitter) Write(p []byte) (int, error) {
	e.answer.emit(p)
	return len(p), e.answer.err
}

// start sends the headers of a body that is long. What has been collected
// then still has to be compressed.
func (a *Answer) start() {
	a.started = true
	a.setHeaders()
	gzips := AcceptsGzip(a.r)
	if gzips {
		startGzip(a.w)
	}
	a.w.WriteHeader(http.StatusOK)
	if !gzips || a.r.Method == http.MethodHead {
		return
	}
	a.z = gzipblock.NewWriter(emitter{a})
	if collected := a.buf; len(*collected) > 0 {
		a.buf = answerBuffers.Get().(*[]byte)
		_, a.err = a.z.Write(*collected)
		giveBack(collected)
	}
}

func (a *Answer) setHeaders() {
	a.w.Header().Set("Content-Type", a.contentType)
	a.w.Header().Set("Cache-Control", "no-cache, private")
}

func (a *Answer) write(p []byte) {
	if a.err = a.r.Context().Err(); a.err != nil || a.r.Method == http.MethodHead || len(p) == 0 {
		return
	}
	_, a.err = a.w.Write(p)
}

// Finish writes what is left. Release must follow.
func (a *Answer) Finish() error {
	if a.err != nil {
		return a.err
	}
	if !a.started {
		a.setHeaders()
		a.started = true
		a.w.Header().Set("Content-Length", strconv.Itoa(len(*a.buf)))
		a.w.WriteHeader(http.StatusOK)
	}
	if a.z != nil {
		a.err = a.z.Close()
	}
	if a.err == nil {
		a.write(*a.buf)
	}
	return a.err
}

// Release gives the buffers back, and returns err. If the body has begun, an error
// can only break the connection off, so that the client does not take a part for the
// whole: Release panics with http.ErrAbortHandler then.
func (a *Answer) Release(err error) error {
	giveBack(a.buf)
	if a.z != nil {
		a.z.Release()
	}
	if err != nil && a.started {
		panic(http.ErrAbortHandler)
	}
	return err
}

// giveBack takes a buffer that is not used any more; one that has grown large
// is not kept.
func giveBack(buf *[]byte) {
	if cap(*buf) <= 4*CompressFrom {
		*buf = (*buf)[:0]
		answerBuffers.Put(buf)
	}
}
