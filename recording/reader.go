package recording

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"time"
)

// DamageError says where a recording cannot be read. Everything before it can.
type DamageError struct {
	Offset int64 // in the file
	Reason string
	// CutOff says that the file ends too early, as that of a recorder that was killed
	// or still runs does, and all that there is can be read.
	CutOff bool
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("at byte %d of the recording: %s", e.Offset, e.Reason)
}

// Reader reads a recording. All methods may be called concurrently.
type Reader struct {
	file   io.ReaderAt
	closer io.Closer
	size   int64
	decode *decompressor

	info      Info
	resources []Resource
	blocks    []placed // events and states
	checks    []check
	end       placed // the last block of events or state
	damage    *DamageError
}

// check is a complete checkpoint: blocks[first] to blocks[last].
type check struct{ first, last int }

// Open opens a recording. It fails if the file is none, or has not even the state at
// the start; damage after that is no error: see Damage.
func Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var r *Reader
	info, err := file.Stat()
	if err == nil {
		r, err = NewReader(file, info.Size())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	r.closer = file
	return r, nil
}

// IsRecording reports whether a file begins as a recording.
func IsRecording(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	begin := make([]byte, len(fileMagic))
	n, err := io.ReadFull(file, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return string(begin[:n]) == fileMagic, nil
}

// NewReader reads a recording of size bytes.
func NewReader(file io.ReaderAt, size int64) (*Reader, error) {
	begin := make([]byte, len(fileMagic))
	if n, err := file.ReadAt(begin, 0); n < len(begin) && err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(begin) != fileMagic {
		return nil, errNotARecording
	}
	decode, err := newDecompressor()
	if err != nil {
		return nil, err
	}
	r := &Reader{file: file, size: size, decode: decode}
	blocks, err := r.readIndex()
	if err != nil {
		blocks = r.scan()
	}
	if err := r.take(blocks); err != nil {
		decode.decoder.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the reader and, if Open made it, closes the file.
func (r *Reader) Close() error {
	r.decode.decoder.Close()
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// readIndex returns the blocks that the index at the end lists.
func (r *Reader) readIndex() ([]placed, error) {
	end := make([]byte, trailerSize)
	if _, err := r.file.ReadAt(end, max(0, r.size-int64(trailerSize))); err != nil {
		return nil, err
	}
	at, ok := parseTrailer(end)
	if !ok {
		return nil, errMalformed
	}
	h, err := r.header(at)
	if err != nil || h.kind != indexBlock || uint64(h.raw) != uint64(h.count)*placedSize {
		return nil, cmp.Or(err, errMalformed)
	}
	payload, err := readBlock(r.file, r.decode, placed{at, h})
	if err != nil {
		return nil, err
	}
	blocks, next := make([]placed, 0, h.count), int64(len(fileMagic))
	for ; len(payload) > 0; payload = payload[placedSize:] {
		b := placed{offset: int64(binary.LittleEndian.Uint64(payload))}
		if b.header, err = parseHeader(payload[8:placedSize]); err != nil || b.offset != next {
			return nil, cmp.Or(err, errMalformed)
		}
		blocks, next = append(blocks, b), b.end()
	}
	if next != at {
		return nil, errMalformed
	}
	return blocks, nil
}

// end is the offset behind a block.
func (b *placed) end() int64 { return b.offset + headerSize + int64(b.stored) }

// header reads the header at an offset.
func (r *Reader) header(at int64) (header, error) {
	data := make([]byte, headerSize)
	if at < 0 || at > r.size-headerSize {
		return header{}, io.ErrUnexpectedEOF
	}
	if _, err := r.file.ReadAt(data, at); err != nil {
		return header{}, err
	}
	return parseHeader(data)
}

// scan finds the blocks of a file without an index, until one is damaged. It checks
// all checksums, and notes where it ended.
func (r *Reader) scan() (blocks []placed) {
	at := int64(len(fileMagic))
	for {
		if at == r.size {
			r.damage = &DamageError{Offset: at, Reason: "the file ends without an index, as that of a recorder that was killed, or still runs", CutOff: true}
			return blocks
		}
		b, err := r.checkBlock(at)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			r.damage = &DamageError{Offset: at, Reason: fmt.Sprintf("the file ends %d bytes into a block", r.size-at), CutOff: true}
			return blocks
		case err != nil:
			r.damage = &DamageError{Offset: at, Reason: err.Error()}
			return blocks
		case b.kind == indexBlock:
			r.damage = &DamageError{Offset: at, Reason: "the index at the end is damaged; everything else is there"}
			return blocks
		}
		blocks, at = append(blocks, b), b.end()
	}
}

// checkBlock reads the block at an offset.
func (r *Reader) checkBlock(at int64) (placed, error) {
	h, err := r.header(at)
	b := placed{at, h}
	switch {
	case err != nil:
		return b, err
	case b.end() > r.size:
		return b, io.ErrUnexpectedEOF
	}
	_, err = readBlock(r.file, r.decode, b)
	return b, err
}

// readBlock reads the payload of a block; an error of the block says where it is.
func readBlock(file io.ReaderAt, decode *decompressor, b placed) ([]byte, error) {
	stored := make([]byte, b.stored)
	if n, err := file.ReadAt(stored, b.offset+headerSize); n < len(stored) {
		return nil, &DamageError{Offset: b.offset, Reason: fmt.Sprintf("the block cannot be read: %v", err)}
	}
	payload, err := decode.payload(b.header, stored)
	if err != nil {
		return nil, &DamageError{Offset: b.offset, Reason: err.Error()}
	}
	return payload, nil
}

// take sorts the blocks by what they are for.
func (r *Reader) take(blocks []placed) error {
	first := -1
	for _, b := range blocks {
		var err error
		switch b.kind {
		case infoBlock:
			err = r.readJSON(b, &r.info)
		case resourcesBlock:
			var more []Resource
			err = r.readJSON(b, &more)
			if err == nil && len(r.resources)+len(more) > maxResources {
				err = &DamageError{Offset: b.offset, Reason: fmt.Sprintf("there are more than %d resources", maxResources)}
			} else {
				r.resources = append(r.resources, more...)
			}
		case stateBlock:
			if b.flags&firstOfState != 0 {
				first = len(r.blocks)
			}
			if b.flags&lastOfState != 0 && first >= 0 {
				r.checks = append(r.checks, check{first, len(r.blocks)})
				first, r.end = -1, b
			}
			r.blocks = append(r.blocks, b)
		case eventsBlock:
			if len(r.checks) > 0 {
				r.blocks, r.end = append(r.blocks, b), b
			}
		default:
			err = &DamageError{Offset: b.offset, Reason: fmt.Sprintf("a block is of type %d, which this version does not know", b.kind)}
		}
		if err != nil {
			var damage *DamageError
			if !errors.As(err, &damage) {
				return err
			}
			r.damage = damage
			break
		}
	}
	if len(r.checks) == 0 {
		err := errors.New("the recording ends before the state at its start is complete: nothing of it can be served")
		if r.damage != nil {
			err = fmt.Errorf("%w (%w)", err, r.damage)
		}
		return err
	}
	return nil
}

// maxJSON bounds a block of JSON, and maxResources their list: a small file may hold very many
// that take a hundred bytes each.
const (
	maxJSON      = 4 << 20
	maxResources = 100_000
)

func (r *Reader) readJSON(b placed, into any) error {
	if b.raw > maxJSON {
		return &DamageError{Offset: b.offset, Reason: fmt.Sprintf("what describes the recording has more than %d bytes", maxJSON)}
	}
	payload, err := readBlock(r.file, r.decode, b)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return &DamageError{Offset: b.offset, Reason: err.Error()}
	}
	return nil
}

// Info is what describes the recording.
func (r *Reader) Info() Info { return r.info }

// Resources are those that entries name by index. The slice is shared.
func (r *Reader) Resources() []Resource { return r.resources }

// Damage says where the file is damaged or was cut off, as far as that is known
// without reading all of it; nil if it is not. Check reads all of it.
func (r *Reader) Damage() *DamageError { return r.damage }

// Start is the revision and the time of the state at the start.
func (r *Reader) Start() (revision int64, at time.Time) {
	b := r.blocks[r.checks[0].last]
	return b.revision, time.Unix(0, b.lastTime)
}

// End is the revision and the time of the last entry.
func (r *Reader) End() (revision int64, at time.Time) {
	return r.end.revision, time.Unix(0, r.end.lastTime)
}

// Size is the number of bytes of the file.
func (r *Reader) Size() int64 { return r.size }

// Entries is the number of entries after the state at the start.
func (r *Reader) Entries() (n int64) {
	for _, b := range r.blocks {
		if b.kind == eventsBlock {
			n += int64(b.count)
		}
	}
	return n
}

// Check reads the whole file and returns the first damage.
func (r *Reader) Check() error {
	for _, b := range r.blocks {
		payload, err := readBlock(r.file, r.decode, b)
		if err != nil {
			return err
		}
		if b.kind == stateBlock {
			err = parseObjects(b.header, payload, len(r.resources), func(Object) error { return nil })
		} else {
			err = parseEntries(b.header, payload, len(r.resources), func(Entry) error { return nil })
		}
		if err != nil {
			return &DamageError{Offset: b.offset, Reason: err.Error()}
		}
	}
	if r.damage != nil {
		return r.damage
	}
	return nil
}

// Checkpoint calls visit with each object of the last checkpoint at or before a
// revision, in no order, and returns the revision of it. An object's Value is shared
// with other objects of the same block. If the checkpoint is damaged, it returns a
// *DamageError; one before it may be intact.
func (r *Reader) Checkpoint(at int64, visit func(Object) error) (int64, error) {
	i := sort.Search(len(r.checks), func(i int) bool { return r.blocks[r.checks[i].last].revision > at }) - 1
	if i < 0 {
		start, _ := r.Start()
		return 0, fmt.Errorf("the recording begins at version %d, after %d", start, at)
	}
	c := r.checks[i]
	for _, b := range r.blocks[c.first : c.last+1] {
		payload, err := readBlock(r.file, r.decode, b)
		if err != nil {
			return r.blocks[c.last].revision, err
		}
		var failed error
		if err := parseObjects(b.header, payload, len(r.resources), func(o Object) error { failed = visit(o); return failed }); err != nil {
			if failed == nil {
				err = &DamageError{Offset: b.offset, Reason: err.Error()}
			}
			return r.blocks[c.last].revision, err
		}
	}
	return r.blocks[c.last].revision, nil
}
