package gzipblock

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/internal/testseed"
)

func FuzzCombine(f *testing.F) {
	f.Add([]byte("levelwire"), uint(5))
	f.Add([]byte{}, uint(0))
	f.Add(make([]byte, 70_000), uint(1))
	f.Fuzz(func(t *testing.T, text []byte, cut uint) {
		at := int(cut % uint(len(text)+1))
		first, second := text[:at], text[at:]
		if got, want := combine(crc32.ChecksumIEEE(first), crc32.ChecksumIEEE(second), len(second)), crc32.ChecksumIEEE(text); got != want {
			t.Fatalf("%d and %d bytes: %08x, want %08x", len(first), len(second), got, want)
		}
	})
}

// FuzzWriter joins the parts that a script cuts a text into: each is written,
// compressed before, or stored.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x01\x00"), []byte("some text that repeats, some text that repeats"))
	f.Add([]byte("\x02\x02\x00\x01\x01\x00"), bytes.Repeat([]byte(`{"kind":"Pod"},`), 9000))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, script, text []byte) {
		var out bytes.Buffer
		w := NewWriter(&out)
		rest := text
		for i, step := range script {
			n := len(rest) * int(step>>2) / 64
			if i == len(script)-1 {
				n = len(rest)
			}
			part := rest[:n]
			block, err := Compress(part)
			switch step % 4 {
			case 0, 3:
				_, err = w.Write(part)
			case 1:
				err = errors.Join(err, w.Join(block))
			case 2:
				block = Stored(part)
				n = block.Size
				err = errors.Join(err, w.Join(block))
			}
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if want := text[:len(text)-len(rest)]; err != nil || !bytes.Equal(got, want) {
			t.Fatalf("script %x: %d bytes and %v, want %d", script, len(got), err, len(want))
		}
	})
}

// joined is a stream of a megabyte with blocks, each of which must be kept
// apart from the text before it.
func joined(t *testing.T) (stream, text []byte) {
	random := rand.New(rand.NewPCG(5, 6))
	var out bytes.Buffer
	w := NewWriter(&out)
	for i := range 60 {
		part := []byte(strings.Repeat(fmt.Sprintf("item %d of the list, ", i%7), 1+random.IntN(2000)))
		text = append(text, part...)
		var err error
		if i%3 == 0 {
			_, err = w.Write(part)
		} else {
			block, e := Compress(part)
			err = errors.Join(e, w.Join(block))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), text
}

// TestOthersRead gives a stream to the decompressors that clients have.
func TestOthersRead(t *testing.T) {
	stream, text := joined(t)
	for _, command := range [][]string{
		{"gzip", "-dc"},
		{"python3", "-c", "import sys,gzip; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))"},
	} {
		path, err := exec.LookPath(command[0])
		if err != nil {
			t.Logf("%s is not installed here", command[0])
			continue
		}
		cmd := exec.Command(path, command[1:]...)
		cmd.Stdin = bytes.NewReader(stream)
		got, err := cmd.Output()
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes and %v, want %d", command[0], len(got), err, len(text))
		}
	}
}

// failing is a connection that breaks after some bytes.
type failing struct{ left int }

var errBroken = errors.New("broken")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestErrorsOfTheConnectionComeThrough(t *testing.T) {
	text, random := make([]byte, 1<<20), testseed.New(t).Rand(0)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	block, err := Compress(text[:1000])
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, 5, 10, 500, 1019, 50_000} {
		w := NewWriter(&failing{left: room})
		err := w.Join(block)
		if err == nil {
			_, err = w.Write(text)
		}
		if err == nil {
			err = w.Close()
		}
		if w.Release(); !errors.Is(err, errBroken) {
			t.Errorf("a connection that breaks after %d bytes: %v", room, err)
		}
	}
}

func TestStoredCutsAtWhatABlockHolds(t *testing.T) {
	if b := Stored(make([]byte, 70_000)); b.Size != 65_535 || len(b.Deflated) != 65_540 {
		t.Errorf("%d bytes of text in %d", b.Size, len(b.Deflated))
	}
}

func BenchmarkCombine(b *testing.B) {
	for b.Loop() {
		combine(0x12345678, 0x9abcdef0, 87_654)
	}
}
