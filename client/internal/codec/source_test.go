package codec

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// chunks gives at most size bytes at a time and counts.
type chunks struct {
	data  []byte
	size  int
	reads int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	c.reads++
	n := copy(p[:min(len(p), c.size)], c.data)
	c.data = c.data[n:]
	return n, nil
}

// TestSourceReadsMuchAtATime: while there is much, reads are large; when little
// comes for a while, the memory is given back.
func TestSourceReadsMuchAtATime(t *testing.T) {
	all := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	in := &chunks{data: all, size: 1 << 20}
	s := NewSource(in, -1)
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, all) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if most := len(all)/largeBuffer + 2; in.reads > most {
		t.Errorf("%d reads, want at most %d", in.reads, most)
	}
	in = &chunks{data: all, size: 1 << 20}
	s = NewSource(in, -1)
	if _, err := io.CopyN(io.Discard, s, 1<<18); err != nil || len(s.buf) != largeBuffer {
		t.Fatalf("%v, a buffer of %d", err, len(s.buf))
	}
	in.size = 100
	if _, err := io.CopyN(io.Discard, s, largeBuffer+2*idleReads*100); err != nil || len(s.buf) != smallBuffer {
		t.Errorf("%v, a buffer of %d after many small reads", err, len(s.buf))
	}
}

// TestSourceKeepsWhatCameWithTheEnd: bytes that come with an error are read
// before it, and until then it is not the reason of anything.
func TestSourceKeepsWhatCameWithTheEnd(t *testing.T) {
	s := NewSource(io.MultiReader(strings.NewReader("abc"), failing{}), -1)
	if b, err := s.ReadByte(); b != 'a' || err != nil {
		t.Fatal(b, err)
	}
	if err := s.ReadError(); err != nil {
		t.Errorf("before the end: %v", err)
	}
	if rest, err := io.ReadAll(s); string(rest) != "bcde" || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%q, %v", rest, err)
	}
	if err := s.ReadError(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("after the end: %v", err)
	}
}

// failing gives its last bytes together with an error.
type failing struct{}

func (failing) Read(p []byte) (int, error) { return copy(p, "de"), io.ErrClosedPipe }
