package faultnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// stream is one direction of a connection in memory: a bounded buffer between
// the writing and the reading end.
type stream struct {
	mu            sync.Mutex
	buf           []byte
	ended         bool // no more bytes will come
	readerGone    bool
	writerGone    bool
	readDeadline  time.Time
	writeDeadline time.Time
	changed       chan struct{} // closed, and replaced, by every change
}

func newStream() *stream {
	return &stream{changed: make(chan struct{})}
}

// signal wakes the goroutines that wait. The caller holds mu.
func (s *stream) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readerGone:
			return 0, net.ErrClosed
		case expired(s.readDeadline):
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(s.buf) > 0:
			n := copy(b, s.buf)
			if s.buf = s.buf[n:]; len(s.buf) == 0 {
				s.buf = nil // the array's front is lost to slicing; a new one is cheaper than a long one
			}
			s.signal()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.wait(&s.readDeadline)
	}
}

func (s *stream) write(b []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.writerGone:
			return written, net.ErrClosed
		case s.ended || s.readerGone:
			return written, errReset
		case expired(s.writeDeadline):
			return written, os.ErrDeadlineExceeded
		case len(b) == 0:
			return written, nil
		}
		if room := pipeBuffer - len(s.buf); room > 0 {
			n := min(room, len(b))
			s.buf = append(s.buf, b[:n]...)
			b, written = b[n:], written+n
			s.signal()
			continue
		}
		s.wait(&s.writeDeadline)
	}
}

// wait gives mu up until something changes or the deadline, which mu guards,
// passes. It may return early.
func (s *stream) wait(deadline *time.Time) {
	changed := s.changed
	var expires <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(*deadline))
		defer timer.Stop()
		expires = timer.C
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
	case <-expires:
	}
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.signal()
}

// abandonReader is the reading end's Close: bytes that were not read are lost,
// and writing fails.
func (s *stream) abandonReader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readerGone, s.buf = true, nil
	s.signal()
}

// abandonWriter is the writing end's Close: what was written can still be
// read.
func (s *stream) abandonWriter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writerGone = true
	s.signal()
}

// setDeadline changes one of the stream's two deadlines, for calls that wait
// now too.
func (s *stream) setDeadline(deadline *time.Time, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*deadline = t
	s.signal()
}

func expired(deadline time.Time) bool {
	return !deadline.IsZero() && !time.Now().Before(deadline)
}
