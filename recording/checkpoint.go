package recording

import (
	"encoding/binary"
	"fmt"
)

// objectKey identifies an object of a recording.
type objectKey struct {
	resource int
	key      string
}

// changes are the keys that have changed since a checkpoint. The objects themselves
// are in the file.
type changes struct {
	newest map[objectKey]int // the number of the entry that changed it last
	count  int               // entries since the checkpoint
	bytes  int64             // of them
}

func newChanges() changes { return changes{newest: map[objectKey]int{}} }

func (c *changes) add(e *Entry, size int) {
	if e.Type == Set || e.Type == Delete {
		c.newest[objectKey{e.Resource, e.Key}] = c.count
	}
	c.count++
	c.bytes += int64(size)
}

// addObject adds an object to the state that is being written.
func (w *Writer) addObject(o *Object) error {
	if !w.inState {
		if err := w.Flush(); err != nil {
			return err
		}
		w.inState, w.stateSize = true, 0
		w.checks = append(w.checks, len(w.index))
	}
	w.begin(stateBlock, w.revision, w.time)
	before := len(w.payload)
	w.payload = appendObject(w.payload, o)
	w.filling.count++
	w.stateSize += int64(len(w.payload) - before)
	if len(w.payload) < blockTarget {
		return w.err
	}
	return w.flushState(0)
}

// flushState writes a block of a state. The first one is marked.
func (w *Writer) flushState(flags uint8) error {
	if w.checks[len(w.checks)-1] == len(w.index) {
		flags |= firstOfState
	}
	w.filling.flags = flags
	err := w.put(w.filling, w.payload)
	w.payload, w.filling = w.payload[:0], header{}
	return err
}

// endState writes the last block of a state, which may have no objects.
func (w *Writer) endState() error {
	if !w.inState {
		if err := w.Flush(); err != nil {
			return err
		}
		w.stateSize = 0
		w.checks = append(w.checks, len(w.index))
	}
	if w.filling.count == 0 {
		w.filling = header{kind: stateBlock}
	}
	w.inState = false
	w.filling.firstRevision, w.filling.revision = w.revision, w.revision
	w.filling.firstTime, w.filling.lastTime = w.time, w.time
	w.since = newChanges()
	return w.flushState(lastOfState)
}

// checkpoint writes the whole state at the revision of the last entry. It is made of
// the last checkpoint and the entries since, both read from the file: in memory are
// only the keys that have changed.
func (w *Writer) checkpoint() error {
	if err := w.Flush(); err != nil {
		return err
	}
	from, through := w.checks[len(w.checks)-1], len(w.index)
	reading, err := newDecompressor()
	if err != nil {
		return err
	}
	defer reading.decoder.Close()
	number := 0
	for _, b := range w.index[from:through] {
		if b.kind != stateBlock && b.kind != eventsBlock {
			continue
		}
		payload, err := readBlock(w.file, reading, b)
		if err != nil {
			return fmt.Errorf("what was recorded cannot be read again: %w", err)
		}
		if b.kind == stateBlock {
			err = parseObjects(b.header, payload, w.resources, func(o Object) error {
				if _, changed := w.since.newest[objectKey{o.Resource, o.Key}]; changed {
					return nil
				}
				return w.addObject(&o)
			})
		} else {
			err = parseEntries(b.header, payload, w.resources, func(e Entry) error {
				number++
				if e.Type != Set || w.since.newest[objectKey{e.Resource, e.Key}] != number-1 {
					return nil
				}
				return w.addObject(&Object{Resource: e.Resource, Revision: e.Revision, Created: e.Created, Key: e.Key, Value: e.Value})
			})
		}
		if err != nil {
			return err
		}
	}
	return w.endState()
}

// placedSize is the size of a block in the index.
const placedSize = 8 + headerSize

func appendPlaced(out []byte, b *placed) []byte {
	return b.append(binary.LittleEndian.AppendUint64(out, uint64(b.offset)))
}
