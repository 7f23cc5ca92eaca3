package rest

import (
	"bufio"
	"errors"
	"io"
)

// source is what the stream decoders read from: it bounds the bytes that one
// object may take, and remembers how reading ended, because decoders dress an
// error up in their own words.
type source struct {
	r     *bufio.Reader
	limit int64 // bytes of one frame; negative: no bound
	left  int64
	err   error // of the underlying reader, io.EOF included; sticky
}

func newSource(r io.Reader, limit int64, buffer int) *source {
	s := &source{r: bufio.NewReaderSize(r, buffer), limit: limit}
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
	n, err := s.r.Read(p)
	s.left -= int64(n)
	if err != nil {
		s.err = err
	}
	return n, err
}

// ReadByte implements io.ByteReader.
func (s *source) ReadByte() (byte, error) {
	if s.limit >= 0 && s.left <= 0 {
		return 0, s.tooLarge()
	}
	b, err := s.r.ReadByte()
	if err != nil {
		s.err = err
		return 0, err
	}
	s.left--
	return b, nil
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
