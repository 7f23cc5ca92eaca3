package recording

import (
	"bytes"
	"io"
	"sort"
)

// Cursor reads the entries of a recording in order. It holds one block. It is for one
// goroutine at a time.
type Cursor struct {
	reader *Reader
	after  int64
	next   int // in reader.blocks
	at     int64
	parser parser
	deltas deltas
	left   uint32
	err    error
}

// After returns a cursor that reads the entries after a revision.
func (r *Reader) After(revision int64) *Cursor {
	// The revisions of blocks never go down. A checkpoint has the revision of the
	// entries before it.
	next := sort.Search(len(r.blocks), func(i int) bool { return i > r.checks[0].last && r.blocks[i].revision > revision })
	return &Cursor{reader: r, after: revision, next: next}
}

// Next returns the next entry. At the end of the recording the error is io.EOF, and at
// a damaged block a *DamageError; both stay.
func (c *Cursor) Next() (Entry, error) {
	for c.err == nil {
		if c.left == 0 {
			c.err = c.load()
			continue
		}
		c.left--
		e, err := c.parser.entry(&c.deltas, len(c.reader.resources))
		if err == nil && c.left == 0 {
			err = c.parser.end()
		}
		if err != nil {
			c.err = &DamageError{Offset: c.at, Reason: err.Error()}
			break
		}
		if e.Revision > c.after {
			e.Value = bytes.Clone(e.Value) // or it would keep its block
			return e, nil
		}
	}
	return Entry{}, c.err
}

// load reads the next block of entries.
func (c *Cursor) load() error {
	r := c.reader
	for c.next < len(r.blocks) && r.blocks[c.next].kind != eventsBlock {
		c.next++
	}
	if c.next == len(r.blocks) {
		if r.damage != nil && !r.damage.CutOff {
			return r.damage
		}
		return io.EOF
	}
	b := r.blocks[c.next]
	c.next++
	payload, err := readBlock(r.file, r.decode, b)
	if err != nil {
		return err
	}
	c.at, c.parser, c.left = b.offset, parser{data: payload}, b.count
	c.deltas = deltas{time: b.firstTime, revision: b.firstRevision}
	return nil
}
