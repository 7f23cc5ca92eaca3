package encoding

import (
	"bytes"
	"errors"
	"testing"
	"testing/iotest"
)

// counted is an admission that counts, and refuses what refuse says.
type counted struct {
	admitAll
	held, peak, most, calls int
	refuse                  func(c *counted, n int) bool
}

var errRefused = errors.New("refused")

func (c *counted) Reserve(n int) error {
	if c.calls++; c.refuse != nil && c.refuse(c, n) {
		return errRefused
	}
	c.held, c.most = c.held+n, max(c.most, n)
	c.peak = max(c.peak, c.held)
	return nil
}

func (c *counted) Release(n int) { c.held -= n }

// TestBodiesAreReadInPieces: every length comes out whole, however it arrives and whatever
// length is announced. No more room is asked for than twice what has come, also when the pieces
// are joined, and only the body itself counts from then on.
func TestBodiesAreReadInPieces(t *testing.T) {
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i * i >> 3)
	}
	for _, size := range []int{0, 1, firstPiece, firstPiece + bytes.MinRead - 1, firstPiece + bytes.MinRead, 40_000, largestPiece * 3, 1_000_001, len(content)} {
		for _, announced := range []int64{-1, 0, int64(size), 1 << 40} {
			var c counted
			body, err := readAll(iotest.HalfReader(bytes.NewReader(content[:size])), announced, &c)
			if err != nil || !bytes.Equal(body, content[:size]) {
				t.Errorf("%d bytes, %d announced: %d bytes, %v", size, announced, len(body), err)
			}
			if limit := 2*size + largestPiece + bytes.MinRead; c.peak > limit || c.most > max(largestPiece, size) {
				t.Errorf("%d bytes, %d announced: %d reserved, %d at once", size, announced, c.peak, c.most)
			}
			if c.held != cap(body) {
				t.Errorf("%d bytes, %d announced: %d are kept, and %d count", size, announced, cap(body), c.held)
			}
		}
	}
	for name, refuse := range map[string]func(*counted, int) bool{
		"third":    func(c *counted, _ int) bool { return c.calls == 3 },
		"the join": func(_ *counted, n int) bool { return n == len(content) },
	} {
		if body, err := readAll(bytes.NewReader(content), -1, &counted{refuse: refuse}); !errors.Is(err, errRefused) || body != nil {
			t.Errorf("a refused reservation, %s: %d bytes, %v", name, len(body), err)
		}
	}
	broken := errors.New("broken")
	if _, err := readAll(iotest.ErrReader(broken), -1, admitAll{}); !errors.Is(err, broken) {
		t.Errorf("a broken body: %v", err)
	}
}

func BenchmarkReadBody(b *testing.B) {
	content := make([]byte, 1<<20)
	for name, announced := range map[string]int64{"length": int64(len(content)), "no length": -1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if _, err := readAll(bytes.NewReader(content), announced, admitAll{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
