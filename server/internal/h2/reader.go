package h2

import (
	"errors"
	"io"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// reader reads frames from a connection. While the connection is silent it holds
// only its small buffer: enough for the frames of a client that reads answers. Only
// the reading goroutine uses it.
type reader struct {
	source io.Reader
	conn   *conn
	small  [64]byte
	large  *buffer
	bytes  []byte // read and not yet taken: a part of small or large
}

// next returns the next n bytes, at most smallBuffer. They are valid until
// the next call.
func (r *reader) next(n int) ([]byte, error) {
	for len(r.bytes) < n {
		if err := r.fill(n); err != nil {
			if errors.Is(err, io.EOF) && len(r.bytes) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	b := r.bytes[:n]
	r.bytes = r.bytes[n:]
	return b, nil
}

// some returns between 1 and most bytes, as many as have arrived. They are valid
// until the next call.
func (r *reader) some(most int) ([]byte, error) {
	if len(r.bytes) == 0 {
		if err := r.fill(min(most, smallBuffer)); err != nil {
			return nil, noEOF(err)
		}
	}
	return r.next(min(most, len(r.bytes)))
}

// skip discards n bytes.
func (r *reader) skip(n int) error {
	for n > 0 {
		b, err := r.some(n)
		if err != nil {
			return err
		}
		n -= len(b)
	}
	return nil
}

// head returns the header of the next frame. io.EOF means an orderly end.
func (r *reader) head() (frame.Header, error) {
	b, err := r.next(frame.HeaderSize)
	if err != nil {
		return frame.Header{}, err
	}
	h := frame.ParseHeader(b)
	if h.Length > uint32(r.conn.server.options.MaxReadFrameSize) {
		return h, connError{http2.ErrCodeFrameSize, "the frame is larger than the announced limit"}
	}
	return h, nil
}

// fill reads once, into a buffer that has room for n bytes.
func (r *reader) fill(n int) error {
	if len(r.bytes) == 0 && r.large != nil && n <= len(r.small) {
		r.release()
	}
	if r.large == nil {
		if len(r.bytes) == 0 && n <= len(r.small) {
			return r.read(r.small[:0])
		}
		r.large = getBuffer()
		r.large.bytes = append(r.large.bytes, r.bytes...)
		r.bytes = r.large.bytes
	}
	if cap(r.bytes) < n || cap(r.bytes) == len(r.bytes) {
		r.bytes = append(r.large.bytes[:0], r.bytes...)
	}
	return r.read(r.bytes)
}

// read appends to b, within its capacity.
func (r *reader) read(b []byte) error {
	r.conn.pauseFlood()
	n, err := r.source.Read(b[len(b):cap(b)])
	r.bytes = b[:len(b)+n]
	if n > 0 {
		r.conn.lastRead.Store(int64(time.Since(r.conn.started)))
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// release returns the large buffer to its pool. Bytes not yet taken are lost.
func (r *reader) release() {
	if r.large != nil {
		r.large.put()
		r.large = nil
	}
	r.bytes = nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
