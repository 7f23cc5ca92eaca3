package apiserver

import (
	"io"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
)

const (
	// earlyAnswerWait is how long the rest of a request's body is read after an error
	// was answered.
	earlyAnswerWait = 2 * time.Second
	// earlyAnswerBodies is how much of it, in bodies of MaxBodyBytes.
	earlyAnswerBodies = 4
)

// unreadBody is the body of a request over HTTP/1.1. If an error is answered before
// the body has ended, the answer goes out at once, and then the rest of the body is
// read and discarded. Closing the connection with unread bytes would make the kernel
// reset it, and a client that is still writing would never see the answer. Package h2
// does the same for streams.
type unreadBody struct {
	body    io.ReadCloser
	control *http.ResponseController
	ended   bool // nothing more can be read
	early   bool // an error has been answered before that
}

// watchBody replaces the body of a request over HTTP/1.1, and returns it if the client
// sends one without having been asked to.
func watchBody(w *request.Recorder, r *http.Request) *unreadBody {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue") {
		return nil
	}
	b := &unreadBody{body: r.Body, control: http.NewResponseController(w)}
	r.Body = b
	w.BeforeError(func() {
		if !b.ended && b.control.EnableFullDuplex() == nil {
			b.early = true
			w.Header().Set("Connection", "close")
		}
	})
	return b
}

// Read implements io.Reader.
func (b *unreadBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

// Close implements io.Closer.
func (b *unreadBody) Close() error { return b.body.Close() }

// discard reads the rest of the body after an early answer, up to limit bytes.
func (b *unreadBody) discard(limit int64) {
	if b == nil || !b.early || b.ended || b.control.Flush() != nil ||
		b.control.SetReadDeadline(time.Now().Add(earlyAnswerWait)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, b.body, limit) // the connection is closed next, whatever ended this
}
