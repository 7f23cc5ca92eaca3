package encoding

import (
	"errors"
	"iter"

	"github.com/levelwire/levelwire/server/internal/gzipblock"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// commaBrace is what stands between two items of a JSON list that leave out
// their kinds.
var commaBrace = []byte(`,{`)

// commaBlock separates the blocks of a JSON list.
var commaBlock = gzipblock.Stored(comma)

// writeRuns writes the items of a list run by run. The encoded form of a run is made
// once for all lists that contain it, whatever else has changed between them.
func (l *listWriter) writeRuns(runs iter.Seq[watchcache.Run], ids blockIDs, separator gzipblock.Block) error {
	first := true
	for run := range runs {
		if !first && separator.Size > 0 {
			if err := l.separate(separator); err != nil {
				return err
			}
		}
		first = false
		if err := l.writeRun(run, ids); err != nil {
			return err
		}
	}
	return nil
}

func (l *listWriter) separate(separator gzipblock.Block) error {
	if l.answer.compresses() {
		return l.answer.join(separator)
	}
	_, err := l.answer.Write(comma)
	return err
}

// writeRun writes the items of one run.
func (l *listWriter) writeRun(run watchcache.Run, ids blockIDs) error {
	if err := l.answer.r.Context().Err(); err != nil {
		return err
	}
	if !run.Whole() || itemsSize(run) > maxRun {
		return l.writeRunAnew(run)
	}
	if l.answer.compresses() {
		block, err := l.encoder.deflated(l.answer.r.Context(), run, ids)
		if err != nil {
			return err
		}
		return l.answer.join(block)
	}
	if cached, err := l.isAsCached(run, ids); err != nil {
		return err
	} else if cached {
		return l.writeCached(run)
	}
	block, err := l.encoder.packed(l.answer.r.Context(), run, ids)
	if err != nil {
		return err
	}
	return l.writePacked(block)
}

// writePacked writes the items of a packed block.
func (l *listWriter) writePacked(block watchcache.Block) error {
	l.answer.expect(block.Size)
	if !l.answer.compresses() {
		return l.answer.fill(block.Size, func(room []byte) error { return unpack(block, room) })
	}
	text := make([]byte, block.Size) // at most once in a list: the first run that makes it long
	if err := unpack(block, text); err != nil {
		return err
	}
	_, err := l.answer.Write(text)
	return err
}

// isAsCached reports whether the encoded form of a run is the cached bytes of its
// objects, which need no block. Objects for which that is not certain are encoded,
// up to the first whose form differs.
func (l *listWriter) isAsCached(run watchcache.Run, ids blockIDs) (bool, error) {
	if l.encoder.form.Media != JSON || l.encoder.form.As != AsObject {
		return false, nil
	}
	if l.encoder.res.Storage == nil {
		return true, nil
	}
	looked := false
	for i := range run.Len() {
		o := run.Object(i)
		stored := o.ReadJSON(&l.scratch)
		if l.encoder.asStored(o, stored) {
			continue
		}
		if !looked {
			if _, made := run.Kept(ids.packed, l.encoder.res.Generation); made {
				return false, nil
			}
			looked = true
		}
		if shown, err := l.encoder.shown(l.answer.r.Context(), o, stored); err != nil || len(shown) > 0 {
			return false, err
		}
	}
	return true, nil
}

// writeCached writes the cached bytes of a run. They are collected in the
// answer's buffer: to hand them on as they lie, slice by slice, was not measurably
// cheaper than the copy.
func (l *listWriter) writeCached(run watchcache.Run) error {
	between, begin, skip := commaBrace, brace, len(l.encoder.res.Prefix())
	if l.custom {
		between, begin, skip = comma, nil, 0
	}
	for i := range run.Len() {
		head := between
		if i == 0 {
			head = begin
		}
		if _, err := l.answer.Write(head); err != nil {
			return err
		}
		if _, err := l.answer.Write(run.Object(i).ReadJSON(&l.scratch)[skip:]); err != nil {
			return err
		}
	}
	return nil
}

// writeRunAnew writes the items of a run that shares no block.
func (l *listWriter) writeRunAnew(run watchcache.Run) error {
	if l.encoder.form.Media == JSON {
		return l.writeItems(func(yield func(*watchcache.Object) bool) {
			for i := range run.Len() {
				if !yield(run.Object(i)) {
					return
				}
			}
		})
	}
	items, err := l.encoder.borrowItems(l.answer.r.Context(), run)
	if err != nil {
		return err
	}
	defer returnItems(items)
	_, err = l.answer.Write(*items)
	return err
}

// writeProtobuf writes the envelope of a list. Its length comes first, so the
// items are visited twice. Most are encoded once: what the first visit has made
// is kept for the second, in blocks or in memory, as far as there is room.
func (l *listWriter) writeProtobuf(p read.Page) error {
	size, write, err := l.protobufItems(p)
	if err != nil {
		return err
	}
	head, err := resource.AppendProtobufListHead(nil, l.listKind(), &p.Meta, size)
	if err != nil {
		return err
	}
	l.answer.expect(len(head) + size)
	if _, err := l.answer.Write(head); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	_, err = l.answer.Write(resource.ProtobufListTail())
	return err
}

// protobufItems returns how long the items of a page are together, and the
// function that writes them.
func (l *listWriter) protobufItems(p read.Page) (int, func() error, error) {
	ids, ok := l.encoder.itemBlocks()
	if !ok || p.Runs == nil {
		return l.protobufItemsOneByOne(p)
	}
	const surelyLong = 4 * CompressFrom // in JSON
	size, gzips := 0, AcceptsGzip(l.answer.r) && atLeast(p.Runs, surelyLong) > surelyLong
	var ends [][]byte
	for run := range p.Runs {
		if err := l.answer.r.Context().Err(); err != nil {
			return 0, nil, err
		}
		n, items, err := l.runSize(run, ids, gzips)
		if err != nil {
			return 0, nil, err
		}
		if size += n; !run.Whole() {
			ends = append(ends, items)
		}
	}
	return size, func() error {
		for run := range p.Runs {
			var err error
			if run.Whole() {
				err = l.writeRun(run, ids)
			} else {
				_, err = l.answer.Write(ends[0])
				ends = ends[1:]
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// runSize returns the length of the items of a run, and makes the block that they
// will be written from. A run that shares no block is at an end of the page: its
// items are returned, to be kept for the second visit.
func (l *listWriter) runSize(run watchcache.Run, ids blockIDs, gzips bool) (size int, items []byte, err error) {
	switch {
	case !run.Whole():
		text, err := l.encoder.borrowItems(l.answer.r.Context(), run)
		if err != nil {
			return 0, nil, err
		}
		return len(*text), *text, nil
	case itemsSize(run) > maxRun:
		text, err := l.encoder.borrowItems(l.answer.r.Context(), run)
		if err != nil {
			return 0, nil, err
		}
		defer returnItems(text)
		return len(*text), nil, nil
	case gzips:
		block, err := l.encoder.deflated(l.answer.r.Context(), run, ids)
		return block.Size, nil, err
	}
	block, err := l.encoder.packed(l.answer.r.Context(), run, ids)
	return block.Size, nil, err
}

// protobufItemsOneByOne is protobufItems for objects that do not lie together. The
// first of them are kept for the second visit, which is all of most lists with
// selectors. The others are encoded twice: to keep them would take as much memory as
// the list is long.
func (l *listWriter) protobufItemsOneByOne(p read.Page) (int, func() error, error) {
	const mostKept = 1 << 20
	item := l.encoder.itemAppender(l.answer.r.Context())
	var kept, buf []byte
	size, first := 0, 0 // first is the number of those that are kept
	for object := range p.Items {
		if err := l.answer.r.Context().Err(); err != nil {
			return 0, nil, err
		}
		var err error
		if size == len(kept) && size < mostKept {
			kept, err = item(kept, object)
			size = len(kept)
			first++
		} else {
			buf, err = item(buf[:0], object)
			size += len(buf)
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return size, func() error {
		if _, err := l.answer.Write(kept); err != nil {
			return err
		}
		n, wrote := 0, len(kept)
		for object := range p.Items {
			if n++; n <= first {
				continue
			}
			var err error
			if buf, err = item(buf[:0], object); err != nil {
				return err
			}
			if wrote += len(buf); wrote > size {
				break
			}
			if _, err := l.answer.Write(buf); err != nil {
				return err
			}
		}
		if wrote != size { // a webhook has converted the same object otherwise
			return errors.New("the objects of a list have changed their length while it was written")
		}
		return nil
	}, nil
}
