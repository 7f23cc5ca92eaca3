package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// File is what a Writer writes to: an *os.File opened for reading and writing. The
// Writer reads what it has written to make checkpoints.
type File interface {
	io.Writer
	io.ReaderAt
}

// WriterOptions configures a Writer.
type WriterOptions struct {
	// CheckpointBytes is after how many bytes of entries the whole state is written
	// again, so that reading at a revision need not begin at the start; at least after four times the
	// size of the state itself. Default 64 MiB.
	CheckpointBytes int64
}

const defaultCheckpointBytes = 64 << 20

// Writer writes a recording. The order is: State with all objects at the start,
// EndState, then Event for each change, and Close. It is for one goroutine at a time.
type Writer struct {
	file   File
	closer io.Closer
	opts   WriterOptions
	blocks *compressor
	size   int64 // bytes written
	index  []placed

	resources int

	payload  []byte // of the block that is being filled
	filling  header
	deltas   deltas
	revision int64 // of the last entry
	time     int64
	err      error // the first one of the file; final

	inState   bool
	since     changes // since the last checkpoint
	stateSize int64   // bytes of objects in the last checkpoint
	checks    []int   // where in index each checkpoint begins
}

// placed is a block in the file.
type placed struct {
	offset int64
	header
}

// Create makes a recording in a new file, which must not exist.
func Create(path string, info Info, opts WriterOptions) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(file, info, opts)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w.closer = file
	return w, nil
}

// NewWriter begins a recording in an empty file.
func NewWriter(file File, info Info, opts WriterOptions) (*Writer, error) {
	if opts.CheckpointBytes == 0 {
		opts.CheckpointBytes = defaultCheckpointBytes
	}
	blocks, err := newCompressor()
	if err != nil {
		return nil, err
	}
	w := &Writer{file: file, opts: opts, blocks: blocks, since: newChanges()}
	if err := w.write([]byte(fileMagic)); err != nil {
		return nil, err
	}
	return w, w.SetInfo(info)
}

// write appends bytes to the file.
func (w *Writer) write(data []byte) error {
	if w.err != nil {
		return w.err
	}
	n, err := w.file.Write(data)
	w.size += int64(n)
	if err != nil {
		w.err = fmt.Errorf("the recording cannot be written: %w", err)
	}
	return w.err
}

// put writes one block.
func (w *Writer) put(h header, payload []byte) error {
	if len(payload) > maxBlock {
		return fmt.Errorf("an object of %d bytes is too large for a recording", len(payload))
	}
	at := w.size
	block := w.blocks.block(h, payload)
	if err := w.write(block); err != nil {
		return err
	}
	h, err := parseHeader(block)
	w.index = append(w.index, placed{at, h})
	return err
}

func (w *Writer) putJSON(kind blockType, v any) error {
	if err := w.Flush(); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.put(header{kind: kind, firstRevision: w.revision, revision: w.revision, firstTime: w.time, lastTime: w.time}, data)
}

// SetInfo writes what describes the recording. The last call counts.
func (w *Writer) SetInfo(info Info) error { return w.putJSON(infoBlock, info) }

// AddResource adds a resource and returns the index by which entries name it.
func (w *Writer) AddResource(r Resource) (int, error) {
	if err := w.putJSON(resourcesBlock, []Resource{r}); err != nil {
		return 0, err
	}
	w.resources++
	return w.resources - 1, nil
}

// Size is the number of bytes in the file.
func (w *Writer) Size() int64 { return w.size }

// Revision is that of the last entry, or of the state at the start.
func (w *Writer) Revision() int64 { return w.revision }

// State adds an object of the state at the start.
func (w *Writer) State(o Object) error {
	if len(w.checks) > 0 && !w.inState {
		return errors.New("the state at the start has ended")
	}
	return w.addObject(&o)
}

// EndState ends the state at the start, which was at a revision and a time.
func (w *Writer) EndState(revision int64, at time.Time) error {
	w.revision, w.time = revision, at.UnixNano()
	return w.endState()
}

// Event adds a change. If its Revision is below that of the last one, it is marked as
// Late and gets that of the last one.
func (w *Writer) Event(e Entry) error {
	switch {
	case w.err != nil:
		return w.err
	case len(w.checks) == 0 || w.inState:
		return errors.New("a change before the end of the state at the start")
	case e.Type != Progress && (e.Resource < 0 || e.Resource >= w.resources):
		return fmt.Errorf("an entry of resource %d of %d", e.Resource, w.resources)
	}
	if e.Revision < w.revision {
		e.Revision, e.Late = w.revision, e.Type != Progress
	}
	e.Created = min(e.Created, e.Revision)
	// Only between two revisions: the checkpoint has all changes of its revision.
	if e.Revision > w.revision && w.since.bytes >= max(w.opts.CheckpointBytes, 4*w.stateSize) {
		if err := w.checkpoint(); err != nil {
			return err
		}
	}
	w.begin(eventsBlock, e.Revision, e.Time.UnixNano())
	before := len(w.payload)
	w.payload = w.deltas.appendEntry(w.payload, &e)
	w.filling.count++
	w.revision, w.time = e.Revision, e.Time.UnixNano()
	w.filling.revision, w.filling.lastTime = w.revision, w.time
	w.since.add(&e, len(w.payload)-before)
	return w.flushFull()
}

// begin makes sure that the block that is being filled is of a type.
func (w *Writer) begin(kind blockType, revision, at int64) {
	if w.filling.count > 0 {
		return
	}
	w.filling = header{kind: kind, firstRevision: revision, revision: revision, firstTime: at, lastTime: at}
	w.deltas = deltas{time: at, revision: revision}
}

func (w *Writer) flushFull() error {
	if len(w.payload) < blockTarget {
		return w.err
	}
	return w.Flush()
}

// Flush writes the entries so far as a block, so that they are in the file if the
// process ends. Many small blocks make a larger file.
func (w *Writer) Flush() error {
	if w.filling.count == 0 {
		return w.err
	}
	err := w.put(w.filling, w.payload)
	w.payload, w.filling = w.payload[:0], header{}
	if cap(w.payload) > 4*blockTarget {
		w.payload = nil
	}
	return err
}

// Close writes the index and, if Create made the file, closes it. A recording that is
// not closed is read as one that was cut off.
func (w *Writer) Close() error {
	err := w.Flush()
	if err == nil {
		err = w.putIndex()
	}
	if w.closer != nil {
		err = errors.Join(err, w.closer.Close())
	}
	if w.err == nil {
		w.err = errors.New("the recording is closed")
	}
	return err
}

func (w *Writer) putIndex() error {
	at, data := w.size, []byte(nil)
	for i := range w.index {
		data = appendPlaced(data, &w.index[i])
	}
	if len(data) > maxBlock {
		return nil // readers scan the file instead
	}
	if err := w.put(header{kind: indexBlock, count: uint32(len(w.index)), revision: w.revision, lastTime: w.time}, data); err != nil {
		return err
	}
	return w.write(trailer(at))
}
