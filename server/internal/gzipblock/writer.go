package gzipblock

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// Writer writes one gzip stream. Write compresses text, Join appends a block as it
// is. It holds a compressor only between a Write
// and the next Join or Close. It is not safe for concurrent use.
type Writer struct {
	out   io.Writer
	z     *flate.Writer // nil: no text since the last block
	crc   uint32
	size  uint32 // modulo 2^32, as the format has it
	begun bool
}

// NewWriter returns a Writer to out. Close ends the stream; Release, which may
// follow it or take its place, returns the compressor of a stream that is broken
// off.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// header is that of DEFLATE, without a time, a name or a system.
var header = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// ending is a last block without text.
var ending = []byte{3, 0}

func (w *Writer) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	_, err := w.out.Write(header)
	return err
}

// Write compresses text. An error is that of the underlying writer.
func (w *Writer) Write(text []byte) (int, error) {
	if err := w.begin(); err != nil {
		return 0, err
	}
	if w.z == nil {
		w.z = borrow(w.out)
	}
	w.crc = crc32.Update(w.crc, crc32.IEEETable, text)
	w.size += uint32(len(text))
	return w.z.Write(text)
}

// Join adds a block.
func (w *Writer) Join(b Block) error {
	if err := w.begin(); err != nil {
		return err
	}
	if w.z != nil {
		if err := w.z.Flush(); err != nil {
			return err
		}
		w.Release() // the compressor may not refer to text before the block
	}
	w.crc = combine(w.crc, b.CRC, b.Size)
	w.size += uint32(b.Size)
	_, err := w.out.Write(b.Deflated)
	return err
}

// Close ends the stream; the underlying writer stays open.
func (w *Writer) Close() error {
	if err := w.begin(); err != nil {
		return err
	}
	tail := make([]byte, 0, 10)
	if w.z != nil {
		if err := w.z.Close(); err != nil {
			return err
		}
		w.Release()
	} else {
		tail = append(tail, ending...)
	}
	tail = binary.LittleEndian.AppendUint32(tail, w.crc)
	tail = binary.LittleEndian.AppendUint32(tail, w.size)
	_, err := w.out.Write(tail)
	return err
}

// Release returns the compressor to its pool.
func (w *Writer) Release() {
	if w.z != nil {
		giveBack(w.z)
		w.z = nil
	}
}
