package memory

import (
	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

const (
	// segmentSize is how many events are dropped from history at a time.
	segmentSize = 1024
	// checkpointInterval is how many events at most are replayed for a read
	// in the past. Each checkpoint holds on to about one path of tree nodes
	// per write since the one before. It divides segmentSize.
	checkpointInterval = 64
)

// history is the log of events, one per revision, and the checkpoints to read
// the past from. Not safe for concurrent use: Store.mu guards it.
type history struct {
	opts Options
	// compacted is the oldest revision that can still be read, 0 before the
	// first compaction. The event at it and all later ones are kept.
	compacted storage.Revision
	first     storage.Revision // of segments[0].events[0]
	segments  []*segment
	length    int   // events in segments
	bytes     int64 // of keys and values in segments
}

// segment is a run of events of consecutive revisions, and the state before
// every checkpointInterval-th of them.
type segment struct {
	events      [segmentSize]storage.Event
	checkpoints [segmentSize / checkpointInterval]btree.Tree[record]
	used        int
	bytes       int64
}

// newHistory returns the history of a store without writes at revision.
func newHistory(opts Options, revision storage.Revision) history {
	return history{opts: opts, first: revision + 1}
}

// add appends the event of the next revision; before is the state it changed.
func (h *history) add(e storage.Event, before btree.Tree[record]) {
	if h.length == len(h.segments)*segmentSize {
		h.segments = append(h.segments, new(segment))
	}
	last := h.segments[len(h.segments)-1]
	if last.used%checkpointInterval == 0 {
		last.checkpoints[last.used/checkpointInterval] = before
	}
	size := int64(len(e.Key) + len(e.Value))
	last.events[last.used] = e
	last.used++
	last.bytes += size
	h.length++
	h.bytes += size
	h.trim()
}

// trim keeps the limits of Options. The segment that is being filled stays.
func (h *history) trim() {
	for len(h.segments) > 1 && (h.length > h.opts.HistoryEvents+segmentSize || h.bytes > h.opts.HistoryBytes) {
		h.compact(h.first + segmentSize)
	}
}

// compact drops the segments that hold nothing but events before at. So first
// is at most compacted, unless nothing was ever dropped.
func (h *history) compact(at storage.Revision) {
	h.compacted = max(h.compacted, at)
	dropped := 0
	for len(h.segments)-dropped > 1 && h.first+segmentSize <= h.compacted {
		h.first += segmentSize
		h.length -= segmentSize
		h.bytes -= h.segments[dropped].bytes
		dropped++
	}
	if dropped > 0 {
		// Copied, so that the array does not keep the dropped ones alive.
		h.segments = append([]*segment(nil), h.segments[dropped:]...)
	}
}

// replay returns a checkpoint and the events that lead from it to revision at,
// which is not above the newest. The events are shared.
func (h *history) replay(at storage.Revision) (snapshot, []storage.Event, error) {
	if at < h.compacted {
		return snapshot{}, nil, storage.ErrCompacted
	}
	if at < h.first {
		// No event was ever dropped, see compact: this is the empty state
		// that the store began with.
		return snapshot{revision: at}, nil, nil
	}
	offset := int(at - h.first)
	segment := h.segments[offset/segmentSize]
	offset %= segmentSize
	begin := offset - offset%checkpointInterval
	base := snapshot{root: segment.checkpoints[begin/checkpointInterval], revision: at}
	return base, segment.events[begin : offset+1], nil
}

// after returns a run of the events after a revision: shared, in order, and
// empty if there are none yet. It fails with storage.ErrCompacted if the
// events that follow are gone.
func (h *history) after(revision storage.Revision) ([]storage.Event, error) {
	if revision < h.compacted-1 {
		return nil, storage.ErrCompacted
	}
	offset := int(max(revision+1-h.first, 0))
	if offset >= h.length {
		return nil, nil
	}
	segment := h.segments[offset/segmentSize]
	return segment.events[offset%segmentSize : segment.used], nil
}

// next is the record after an event that writes it; the zero record is that of
// a key that does not exist.
func (r record) next(e storage.Event) record {
	created := r.created
	if created == 0 {
		created = e.Revision
	}
	return record{value: e.Value, modified: e.Revision, created: created}
}

// oldest returns the smallest revision that can be read.
func (h *history) oldest() storage.Revision { return max(h.compacted, 1) }

// apply returns the state after an event.
func apply(root btree.Tree[record], e storage.Event) btree.Tree[record] {
	if e.Deleted {
		root, _ = root.Delete(e.Key)
		return root
	}
	before, _ := root.Get(e.Key)
	return root.Set(e.Key, before.next(e))
}

// applyAll returns the state after events, which are in order.
func applyAll(root btree.Tree[record], events []storage.Event) btree.Tree[record] {
	batch := root.Batch()
	for _, e := range events {
		if e.Deleted {
			batch.Delete(e.Key)
		} else {
			before, _ := batch.Get(e.Key)
			batch.Set(e.Key, before.next(e))
		}
	}
	return batch.Tree()
}
