package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The file begins with fileMagic and ends with trailerMagic, which only a file that
// was closed has.
const (
	fileMagic    = "LWRECORD\x00\x00\x00\x01"
	trailerMagic = "LWRECEND"
	blockMagic   = "LWB\x01"

	headerSize  = 64
	trailerSize = len(trailerMagic) + 8 + 4 // magic, offset of the index, checksum of both

	// blockTarget is how many bytes of entries make a block full. A single object may
	// make a block larger, up to maxBlock.
	blockTarget = 1 << 20
	maxBlock    = 64 << 20
)

// blockType says what is in a block.
type blockType uint8

const (
	infoBlock      blockType = 1 + iota // Info, as JSON
	resourcesBlock                      // Resources that are added to the list, as JSON
	eventsBlock                         // entries
	stateBlock                          // objects of a checkpoint
	indexBlock                          // the headers of all blocks
)

// The flags of stateBlock: the first and the last block of a checkpoint.
const (
	firstOfState = 1 << iota
	lastOfState
)

var (
	checksums = crc32.MakeTable(crc32.Castagnoli)
	// errNotARecording is the error of a file that is something else.
	errNotARecording = errors.New("not a recording of levelwire: it does not begin as one")
)

// header precedes the payload of each block.
type header struct {
	kind                    blockType
	flags                   uint8
	stored, raw             uint32 // bytes of the payload, compressed and not
	count                   uint32 // entries or objects
	payloadSum              uint32
	firstRevision, revision int64 // revision is the last one
	firstTime, lastTime     int64 // nanoseconds since 1970
}

// append appends the encoded header with its checksum.
func (h *header) append(out []byte) []byte {
	begin := len(out)
	out = append(out, blockMagic...)
	out = append(out, byte(h.kind), h.flags, 0, 0)
	for _, n := range []uint32{h.stored, h.raw, h.count, h.payloadSum} {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	for _, n := range []int64{h.firstRevision, h.revision, h.firstTime, h.lastTime} {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	out = binary.LittleEndian.AppendUint32(out, 0)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[begin:], checksums))
}

// parseHeader decodes the first headerSize bytes of data.
func parseHeader(data []byte) (header, error) {
	var h header
	if len(data) < headerSize {
		return h, io.ErrUnexpectedEOF
	}
	data = data[:headerSize]
	if string(data[:len(blockMagic)]) != blockMagic {
		return h, errors.New("no block begins here")
	}
	if crc32.Checksum(data[:headerSize-4], checksums) != binary.LittleEndian.Uint32(data[headerSize-4:]) {
		return h, errors.New("the checksum of the block's header is wrong")
	}
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	long := func(at int) int64 { return int64(binary.LittleEndian.Uint64(data[at:])) }
	h = header{
		kind: blockType(data[4]), flags: data[5],
		stored: number(8), raw: number(12), count: number(16), payloadSum: number(20),
		firstRevision: long(24), revision: long(32), firstTime: long(40), lastTime: long(48),
	}
	if h.raw > maxBlock || h.stored > maxBlock || h.count > h.raw {
		return h, fmt.Errorf("the block's header says %d bytes, stored in %d, with %d entries: more than there can be", h.raw, h.stored, h.count)
	}
	return h, nil
}

// compressor makes blocks. It is for one goroutine.
type compressor struct {
	encoder *zstd.Encoder
	out     []byte
}

func newCompressor() (*compressor, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	return &compressor{encoder: encoder}, err
}

// block returns a whole block; it is valid until the next call.
func (c *compressor) block(h header, payload []byte) []byte {
	c.out = append(c.out[:0], make([]byte, headerSize)...)
	c.out = c.encoder.EncodeAll(payload, c.out)
	stored := c.out[headerSize:]
	h.stored, h.raw = uint32(len(stored)), uint32(len(payload))
	h.payloadSum = crc32.Checksum(stored, checksums)
	h.append(c.out[:0])
	return c.out
}

// decompressor reads blocks. It may be used by many goroutines.
type decompressor struct{ decoder *zstd.Decoder }

func newDecompressor() (*decompressor, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecoderMaxWindow(maxBlock))
	return &decompressor{decoder}, err
}

// payload checks and decompresses what follows a header. The result is new.
func (d *decompressor) payload(h header, stored []byte) ([]byte, error) {
	if crc32.Checksum(stored, checksums) != h.payloadSum {
		return nil, errors.New("the checksum of the block is wrong")
	}
	raw, err := d.decoder.DecodeAll(stored, make([]byte, 0, min(int(h.raw), 2*blockTarget)))
	if err != nil {
		return nil, fmt.Errorf("the block cannot be decompressed: %w", err)
	}
	if len(raw) != int(h.raw) {
		return nil, fmt.Errorf("the block has %d bytes instead of %d", len(raw), h.raw)
	}
	return raw, nil
}

// trailer is the end of a file that was closed.
func trailer(index int64) []byte {
	out := binary.LittleEndian.AppendUint64([]byte(trailerMagic), uint64(index))
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, checksums))
}

// parseTrailer returns the offset of the index; false if data is no trailer.
func parseTrailer(data []byte) (index int64, ok bool) {
	if len(data) != trailerSize || string(data[:len(trailerMagic)]) != trailerMagic ||
		crc32.Checksum(data[:trailerSize-4], checksums) != binary.LittleEndian.Uint32(data[trailerSize-4:]) {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(data[len(trailerMagic):])), true
}
