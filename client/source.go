package client

import (
	"errors"
	"io"
)

// source is what the stream decoders read from: it bounds the bytes that one
// object may take, and remembers how reading ended, because decoders dress an
// error up in their own words.
type source struct {
	in         io.Reader
	buf        []byte
	start, end int   // of what buf holds
	grow       bool  // the last read filled buf
	idle       int   // reads in a row that a small buffer would have done for
	limit      int64 // bytes of one frame; negative: no bound
	left       int64
	pending    error // came with the last bytes of buf
	err        error // of the underlying reader, io.EOF included; sticky
}

// A source begins with a small buffer, as watches are many and mostly idle,
// and goes on with a large one while there is much to read: each read of an
// HTTP/2 body is answered with a frame for flow control, which is a system
// call and a record of TLS, and for a list in a watch was a sixth of the time.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
	// idleReads small ones in a row give the large buffer back.
	idleReads = 64
)

func newSource(r io.Reader, limit int64) *source {
	s := &source{in: r, limit: limit}
	s.frame()
	return s
}

// frame starts the next object. A decoder that reads ahead has charged a part
// of it to the one before: the bound is exact to within its buffer.
func (s *source) frame() { s.left = s.limit }

// Read implements io.Reader. It never waits to fill p.
func (s *source) Read(p []byte) (int, error) {
	if s.limit >= 0 {
		if s.left <= 0 {
			return 0, s.tooLarge()
		}
		p = p[:min(int64(len(p)), s.left)]
	}
	if err := s.fill(); err != nil {
		return 0, err
	}
	n := copy(p, s.buf[s.start:s.end])
	s.start += n
	s.left -= int64(n)
	return n, nil
}

// ReadByte implements io.ByteReader.
func (s *source) ReadByte() (byte, error) {
	if s.limit >= 0 && s.left <= 0 {
		return 0, s.tooLarge()
	}
	if err := s.fill(); err != nil {
		return 0, err
	}
	b := s.buf[s.start]
	s.start++
	s.left--
	return b, nil
}

// fill reads if nothing is buffered.
func (s *source) fill() error {
	if s.start < s.end {
		return nil
	}
	if s.err == nil {
		s.err = s.pending
	}
	if s.err != nil {
		return s.err
	}
	s.resize()
	s.start, s.end = 0, 0
	for range maxEmptyReads {
		n, err := s.in.Read(s.buf)
		if n > 0 {
			s.end, s.pending = n, err
			s.grow = n == len(s.buf)
			if s.idle++; n > smallBuffer {
				s.idle = 0
			}
			return nil
		}
		if err != nil {
			s.err = err
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}

// maxEmptyReads is how often a reader may return nothing and no error.
const maxEmptyReads = 100

// resize is called when nothing is buffered.
func (s *source) resize() {
	switch {
	case s.buf == nil, len(s.buf) > smallBuffer && s.idle > idleReads:
		s.buf = make([]byte, smallBuffer)
	case s.grow && len(s.buf) == smallBuffer:
		s.buf = make([]byte, largeBuffer)
		s.idle = 0
	}
}

// tooLarge ends reading.
func (s *source) tooLarge() error {
	s.err = ErrFrameTooLarge
	return s.err
}

// cause tells an error of the connection from one of what came over it. err
// is what a decoder met within a list or an event.
func (s *source) cause(what string, err error) error {
	switch {
	case errors.Is(s.err, io.EOF):
		return io.ErrUnexpectedEOF
	case s.err != nil:
		return s.err
	default:
		return &DecodeError{What: what, Err: err}
	}
}
