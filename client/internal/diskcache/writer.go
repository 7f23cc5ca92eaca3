package diskcache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"

	"github.com/levelwire/levelwire/internal/atomicfile"
)

// Writer writes a file. It holds one block in memory, whatever the number of
// objects. It is not safe for concurrent use.
type Writer struct {
	path    string
	limits  Limits
	file    *atomicfile.File
	block   []byte // its length, and the objects so far
	sum     uint32
	size    int64
	objects uint64
	err     error // the first; sticky
}

// Create begins to write a file in place of the one at path, which stays until
// Commit. The file can be read by its owner only: objects may be secrets. The
// caller must end with Commit or Abort.
func Create(path string, header Header, limits Limits) (*Writer, error) {
	encoded, err := header.encode()
	if err != nil {
		return nil, fmt.Errorf("cache file %s: %w", path, err)
	}
	file, err := atomicfile.Create(path, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, limits: limits.withDefaults(), file: file, block: newBlock(nil)}
	if err := w.sealed(append(prelude(len(encoded)), encoded...)); err != nil {
		file.Abort()
		return nil, err
	}
	return w, nil
}

// newBlock leaves room for the block's length.
func newBlock(memory []byte) []byte { return append(memory[:0], 0, 0, 0, 0) }

// Append writes an object: encode appends its bytes to what it is given, and
// returns all of it. An error, encode's included, ends the file: it cannot be
// committed.
func (w *Writer) Append(encode func(dst []byte) ([]byte, error)) error {
	if w.err != nil {
		return w.err
	}
	start := len(w.block)
	block, err := encode(append(w.block, 0, 0, 0, 0))
	if err != nil {
		return w.fail(err)
	}
	size := int64(len(block) - start - lengthBytes)
	if size < 0 || size > w.limits.ObjectBytes {
		return w.fail(fmt.Errorf("cache file %s: an object has %d bytes, more than the limit of %d", w.path, size, w.limits.ObjectBytes))
	}
	binary.LittleEndian.PutUint32(block[start:], uint32(size))
	w.block = block
	w.objects++
	if len(w.block) >= blockTarget {
		return w.flush()
	}
	return nil
}

// Add writes an object that is encoded already.
func (w *Writer) Add(object []byte) error {
	return w.Append(func(dst []byte) ([]byte, error) { return append(dst, object...), nil })
}

// flush writes the block.
func (w *Writer) flush() error {
	payload := len(w.block) - lengthBytes
	if payload == 0 {
		return nil
	}
	binary.LittleEndian.PutUint32(w.block, uint32(payload))
	err := w.sealed(w.block)
	if cap(w.block) > 4*blockTarget {
		w.block = nil // one huge object must not be held for the others' sake
	}
	w.block = newBlock(w.block)
	return err
}

// sealed writes data and the checksum of everything so far. It may use the
// memory behind data.
func (w *Writer) sealed(data []byte) error {
	w.sum = crc32.Update(w.sum, checksums, data)
	data = binary.LittleEndian.AppendUint32(data, w.sum)
	w.size += int64(len(data))
	if w.size > w.limits.FileBytes {
		return w.fail(fmt.Errorf("cache file %s: more than the limit of %d bytes", w.path, w.limits.FileBytes))
	}
	if _, err := w.file.Write(data); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// Commit completes the file and puts it in its place.
func (w *Writer) Commit() (Written, error) {
	if w.err == nil {
		_ = w.flush() // sealed keeps its error
	}
	if w.err == nil {
		end := binary.LittleEndian.AppendUint32(nil, 0)
		_ = w.sealed(binary.LittleEndian.AppendUint64(end, w.objects))
	}
	if w.err != nil {
		w.file.Abort()
		return Written{}, w.err
	}
	if err := w.file.Commit(); err != nil {
		return Written{}, w.fail(err)
	}
	w.err = os.ErrClosed
	return Written{Path: w.path, Bytes: w.size, sum: w.sum}, nil
}

// Abort gives the file up. It does nothing after Commit.
func (w *Writer) Abort() {
	w.file.Abort()
	_ = w.fail(os.ErrClosed)
}
