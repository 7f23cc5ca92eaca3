package gzipblock

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Block is compressed text that can be joined to any stream. It is immutable
// and may be joined to many streams at once.
type Block struct {
	Deflated []byte
	Size     int    // of the text, in bytes
	CRC      uint32 // of the text, IEEE
}

// compressors are 300 kB to 1 MB each; they are kept between uses. The
// fastest level takes half the time of compress/flate's, for a few percent of size.
var compressors = sync.Pool{New: func() any {
	z, _ := flate.NewWriter(io.Discard, flate.BestSpeed) // the level is valid: no error
	return z
}}

// borrow returns a compressor from the pool, with an empty window.
func borrow(out io.Writer) *flate.Writer {
	z := compressors.Get().(*flate.Writer)
	z.Reset(out)
	return z
}

// giveBack returns a compressor to the pool.
func giveBack(z *flate.Writer) {
	z.Reset(io.Discard) // keep no reference to a connection
	compressors.Put(z)
}

var outputs = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Compress returns text as a block.
func Compress(text []byte) (Block, error) {
	out := outputs.Get().(*bytes.Buffer)
	defer outputs.Put(out)
	out.Reset()
	z := borrow(out)
	defer giveBack(z)
	if _, err := z.Write(text); err != nil {
		return Block{}, err
	}
	if err := z.Flush(); err != nil {
		return Block{}, err
	}
	return Block{Deflated: bytes.Clone(out.Bytes()), Size: len(text), CRC: crc32.ChecksumIEEE(text)}, nil
}

// Stored returns text as a block that is not compressed, with five bytes in front.
// It is for short text: text of more than 64 kB is cut.
func Stored(text []byte) Block {
	text = text[:min(len(text), math.MaxUint16)]
	raw := []byte{0}
	raw = binary.LittleEndian.AppendUint16(raw, uint16(len(text)))
	raw = binary.LittleEndian.AppendUint16(raw, ^uint16(len(text)))
	return Block{Deflated: append(raw, text...), Size: len(text), CRC: crc32.ChecksumIEEE(text)}
}
