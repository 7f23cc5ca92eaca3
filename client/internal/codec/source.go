package codec

import (
	"errors"
	"io"
)

// Source is the body of an answer, as the decoders of streams read it. It bounds
// the bytes of one object, and it keeps the error that ended reading, which
// decoders hide within errors of their own. It is for one goroutine at a time.
type Source struct {
	in         io.Reader
	buf        []byte
	start, end int   // of what buf holds
	grow       bool  // the last read filled buf
	idle       int   // reads in a row that a small buffer would have done for
	limit      int64 // bytes of one frame; negative: no bound
	left       int64 // of limit, for the current frame
	pending    error // came with the last bytes of buf
	err        error // of the underlying reader, io.EOF included; sticky

	inEvent   bool // a part of the current frame was read, and the rest was not
	partial   bool // and was waited for
	onPartial func(partial bool)
}

// A Source begins with a small buffer, as most watches are idle, and takes a large
// one while much arrives: the HTTP/2 transport answers each read of a body with a
// frame for flow control, which is a system call and a record of TLS. With small
// reads that took a sixth of the time of a list in a watch.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
	// idleReads small ones in a row give the large buffer back.
	idleReads = 64
)

// NewSource returns a source that reads r and fails with ErrFrameTooLarge at an
// object of more than limit bytes; a negative limit is none.
func NewSource(r io.Reader, limit int64) *Source {
	s := &Source{in: r, limit: limit}
	s.StartFrame()
	return s
}

// StartFrame begins to count the bytes of the next object. A decoder that reads
// ahead has read a part of it already: the limit is exact to within the decoder's
// buffer.
func (s *Source) StartFrame() { s.left = s.limit }

// OnPartial has f called with true when the rest of an event is waited for of which a part
// has come, and with false when the next event is asked for. It costs nothing for events
// that come as a whole.
func (s *Source) OnPartial(f func(partial bool)) { s.onPartial = f }

// beginEvent notes that a part of an event was read.
func (s *Source) beginEvent() { s.inEvent = true }

// endEvent notes that the next event is asked for.
func (s *Source) endEvent() {
	s.inEvent = false
	if s.partial {
		s.partial = false
		s.onPartial(false)
	}
}

// exhausted reports whether the limit of the current frame has been read.
func (s *Source) exhausted() bool { return s.limit >= 0 && s.left <= 0 }

// atMost returns how large a buffer may become that has so many bytes of the current frame:
// size, or as much as the frame may have, and in any case one byte more.
func (s *Source) atMost(has, size int) int {
	if s.limit < 0 {
		return size
	}
	return int(min(int64(size), int64(has)+max(s.left, 1)))
}

// Read implements io.Reader. It never waits to fill p.
func (s *Source) Read(p []byte) (int, error) {
	if s.exhausted() {
		return 0, s.tooLarge()
	}
	if s.limit >= 0 {
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
func (s *Source) ReadByte() (byte, error) {
	if s.exhausted() {
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
func (s *Source) fill() error {
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
	if s.inEvent && !s.partial && s.onPartial != nil {
		s.partial = true
		s.onPartial(true)
	}
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

// resize chooses the size of the buffer, which must be empty.
func (s *Source) resize() {
	switch {
	case s.buf == nil, len(s.buf) > smallBuffer && s.idle > idleReads:
		s.buf = make([]byte, smallBuffer)
	case s.grow && len(s.buf) == smallBuffer:
		s.buf = make([]byte, largeBuffer)
		s.idle = 0
	}
}

// tooLarge ends reading because of the limit, and returns that error.
func (s *Source) tooLarge() error {
	s.err = ErrFrameTooLarge
	return s.err
}

// ReadError returns the error that ended reading. It returns nil as long as the
// source can be read: an error of a decoder is then about the bytes. The end of
// the stream is io.ErrUnexpectedEOF, as a decoder that fails there was within a
// list or an event.
func (s *Source) ReadError() error {
	if errors.Is(s.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return s.err
}

// ReadFrame reads one object, whose size has been read, into buf or a larger
// buffer.
func (s *Source) ReadFrame(buf []byte, size uint64) ([]byte, error) {
	if s.limit >= 0 && size > uint64(s.limit) || size > largestSize {
		return nil, s.tooLarge()
	}
	s.StartFrame()
	return readSized(s, buf, int(size))
}

// largestSize keeps a size that makes no sense from becoming a negative int.
const largestSize = 1 << 40

// ErrFrameTooLarge says that an object is over the limit of its [Source]. Users
// know it as client.ErrFrameTooLarge.
var ErrFrameTooLarge = errors.New("larger than the client's limit for one object (Options.MaxFrameBytes)")
