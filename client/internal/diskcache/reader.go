package diskcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/levelwire/levelwire/internal/atomicfile"
)

// Reader reads a file as a stream. It holds one block in memory. It is not
// safe for concurrent use.
type Reader struct {
	path   string
	limits Limits
	file   *os.File // nil: not ours to close
	in     *bufio.Reader
	size   int64
	left   int64 // bytes not read yet
	sum    uint32
	header Header

	block   []byte // of which rest is not handed out
	rest    []byte
	objects uint64
	err     error // sticky; io.EOF after the last object
}

// Open opens the file at path for the identity it must have. A file that
// cannot be used is a *RefusedError; one that is not there is fs.ErrNotExist.
// What an interrupted writer left beside it is removed.
func Open(path string, want Identity, limits Limits) (*Reader, error) {
	if err := atomicfile.Sweep(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cache file: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &RefusedError{path, Foreign, "it is no regular file"}
	}
	var r *Reader
	if err == nil {
		r, err = NewReader(path, file, info.Size(), want, limits)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	r.file = file
	return r, nil
}

// NewReader is Open for a source of size bytes. name stands in errors.
func NewReader(name string, source io.Reader, size int64, want Identity, limits Limits) (*Reader, error) {
	r := &Reader{path: name, limits: limits.withDefaults(), in: bufio.NewReaderSize(source, 64<<10), size: size, left: size}
	if size > r.limits.FileBytes {
		return nil, r.refuse(TooLarge, "it has %d bytes, more than the limit of %d", size, r.limits.FileBytes)
	}
	if err := r.begin(want); err != nil {
		return nil, err
	}
	return r, nil
}

// begin reads up to the header.
func (r *Reader) begin(want Identity) error {
	start, err := r.take(preludeBytes)
	if err != nil {
		var short *RefusedError
		if errors.As(err, &short) {
			return r.refuse(Foreign, "it is too short for a cache file")
		}
		return err
	}
	if string(start[:len(magic)]) != magic {
		return r.refuse(Foreign, "it does not begin as a cache file does")
	}
	start = start[len(magic):]
	if format := binary.LittleEndian.Uint16(start); format != formatVersion {
		return r.refuse(Newer, "its format is %d, known is %d", format, formatVersion)
	}
	size := binary.LittleEndian.Uint32(start[4:])
	if binary.LittleEndian.Uint16(start[2:]) != 0 || size > maxHeader {
		return r.refuse(Corrupt, "the first bytes are wrong")
	}
	data, err := r.sealed(int(size), nil)
	if err != nil {
		return err
	}
	if r.header, err = decodeHeader(data); err != nil {
		return r.refuse(Corrupt, "%v", err)
	}
	if difference := r.header.differs(want); difference != "" {
		return r.refuse(Foreign, "%s", difference)
	}
	return nil
}

// Header returns what the file says before its objects.
func (r *Reader) Header() Header { return r.header }

// Next returns the next object. Its bytes may be used until the next call.
// io.EOF means that the whole file has been read and is sound: until then
// nothing of it can be relied on.
func (r *Reader) Next() ([]byte, error) {
	for r.err == nil && len(r.rest) == 0 {
		r.err = r.nextBlock()
	}
	if r.err != nil {
		return nil, r.err
	}
	if len(r.rest) < lengthBytes {
		r.err = r.refuse(Corrupt, "a block ends within an object's length")
		return nil, r.err
	}
	size := int64(binary.LittleEndian.Uint32(r.rest))
	body := r.rest[lengthBytes:]
	switch {
	case size > r.limits.ObjectBytes:
		r.err = r.refuse(TooLarge, "an object has %d bytes, more than the limit of %d", size, r.limits.ObjectBytes)
		return nil, r.err
	case size > int64(len(body)):
		r.err = r.refuse(Corrupt, "a block ends within an object")
		return nil, r.err
	}
	r.rest = body[size:]
	r.objects++
	return body[:size:size], nil
}

// nextBlock reads a block, or the end and what follows it.
func (r *Reader) nextBlock() error {
	head, err := r.take(lengthBytes)
	if err != nil {
		return err
	}
	size := int64(binary.LittleEndian.Uint32(head))
	switch {
	case size == 0:
		return r.end()
	case size > r.limits.block():
		return r.refuse(TooLarge, "a block has %d bytes, more than the limit of %d", size, r.limits.block())
	}
	if r.block, err = r.sealed(int(size), r.block); err != nil {
		return err
	}
	r.rest = r.block
	return nil
}

// end compares the number of objects and reads the notes about newer
// versions. It returns io.EOF if all is well.
func (r *Reader) end() error {
	data, err := r.sealed(8, nil)
	if err != nil {
		return err
	}
	if n := binary.LittleEndian.Uint64(data); n != r.objects {
		return r.refuse(Corrupt, "it has %d objects and says %d", r.objects, n)
	}
	const fixed = lengthBytes + 8
	for r.left >= fixed {
		head, err := r.take(fixed)
		if err != nil {
			return err
		}
		size := int64(binary.LittleEndian.Uint32(head))
		if size == 0 || size > maxVersion {
			return r.refuse(Corrupt, "a note about a resourceVersion has a length of %d", size)
		}
		if size+sumBytes > r.left {
			break // the writer died here; what was before is sound
		}
		version, err := r.sealed(int(size), nil)
		if err != nil {
			return err
		}
		r.header.Version = string(version)
		r.header.Saved = time.Unix(0, int64(binary.LittleEndian.Uint64(head[lengthBytes:])))
	}
	return io.EOF
}

// sealed reads n bytes and the checksum behind them.
func (r *Reader) sealed(n int, memory []byte) ([]byte, error) {
	data, err := r.read(n+sumBytes, memory)
	if err != nil {
		return nil, err
	}
	data, stored := data[:n], binary.LittleEndian.Uint32(data[n:])
	r.sum = crc32.Update(r.sum, checksums, data)
	if r.sum != stored {
		return nil, r.refuse(Corrupt, "the checksum %d bytes before the end is wrong", r.left+sumBytes)
	}
	return data, nil
}

// take reads n bytes and adds them to the checksum that follows later.
func (r *Reader) take(n int) ([]byte, error) {
	data, err := r.read(n, nil)
	r.sum = crc32.Update(r.sum, checksums, data)
	return data, err
}

// read reads n bytes, into memory if it suffices.
func (r *Reader) read(n int, memory []byte) ([]byte, error) {
	if int64(n) > r.left {
		return nil, r.refuse(Truncated, "%d bytes are left where %d should follow", r.left, n)
	}
	if cap(memory) < n {
		memory = make([]byte, n)
	}
	memory = memory[:n]
	if _, err := io.ReadFull(r.in, memory); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, r.refuse(Truncated, "it became shorter while it was read")
		}
		return nil, fmt.Errorf("cache file %s: %w", r.path, err)
	}
	r.left -= int64(n)
	return memory, nil
}

func (r *Reader) refuse(reason Reason, format string, args ...any) error {
	return &RefusedError{Path: r.path, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// Version is the newest version that the objects are known to show. It is
// final when Next has returned io.EOF; so is Saved.
func (r *Reader) Version() string { return r.header.Version }

// Saved is when the objects were known to show Version.
func (r *Reader) Saved() time.Time { return r.header.Saved }

// Objects is how many objects Next has returned.
func (r *Reader) Objects() int { return int(r.objects) }

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Written returns the file for [Written.Advance], once Next has returned
// io.EOF. It returns false if the file ends with an incomplete note.
func (r *Reader) Written() (w Written, ok bool) {
	if !errors.Is(r.err, io.EOF) || r.left > 0 {
		return w, false
	}
	return Written{Path: r.path, Bytes: r.size, sum: r.sum}, true
}
