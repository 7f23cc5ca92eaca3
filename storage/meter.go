package storage

import (
	"context"
	"sync"
)

// Meter counts the bytes of a store's history, which are the keys and values of all
// changes since the last compaction, and reports when they exceed a limit. It does
// not read the store: it counts what others read through Counting's Source, and
// knows earlier history only if that is replayed there. All methods may be called
// concurrently; a nil Meter has no limit.
type Meter struct {
	prefix string
	limit  int64
	over   chan struct{} // of length 1: the limit has been exceeded, or exceeded further

	mu    sync.Mutex
	marks []mark // ascending
	total int64  // of their bytes

	begun    bool     // a stream has begun, after since
	since    Revision // changes up to here are counted by a replay
	replayed bool
	last     Revision // everything up to here has been counted
	dropped  Revision // changes up to here no longer count
}

// mark is a run of changes.
type mark struct {
	last  Revision // of the run
	bytes int64    // of keys and values
}

// marksPerLimit is how finely the history is divided.
const marksPerLimit = 64

// NewMeter returns a Meter of the keys that start with prefix. limit is in bytes
// and above zero; up to a tenth more is no excess, so that compactions are few.
func NewMeter(prefix string, limit int64) *Meter {
	return &Meter{prefix: prefix, limit: limit, over: make(chan struct{}, 1)}
}

// Source is the part of a store that streams and replays changes.
type Source interface {
	Reader
	Watcher
	Historian
}

// Counting returns source with the Meter counting what is read of it: the streams of
// the Meter's prefix, and the first replay that is complete.
func (m *Meter) Counting(source Source) Source {
	if m == nil {
		return source
	}
	return &countedSource{source, m}
}

// exceeded returns a channel that receives when the excess has grown.
func (m *Meter) exceeded() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.over
}

// excess returns the oldest revision whose later changes are within the limit,
// and whether all of them exceed it.
func (m *Meter) excess() (Revision, bool) {
	if m == nil {
		return 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.exceeds() {
		return 0, false
	}
	kept, i := int64(0), len(m.marks)-1
	for ; kept+m.marks[i].bytes <= m.limit; i-- {
		kept += m.marks[i].bytes
	}
	return m.marks[i].last, true
}

// forget notes that the store has been compacted to a revision.
func (m *Meter) forget(at Revision) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropped = max(m.dropped, at)
	m.trim()
}

// trim drops the marks that no longer count. A mark that ends later is kept whole.
func (m *Meter) trim() {
	gone := 0
	for gone < len(m.marks) && m.marks[gone].last <= m.dropped {
		m.total -= m.marks[gone].bytes
		gone++
	}
	m.marks = m.marks[gone:]
}

func (m *Meter) exceeds() bool { return m.total > m.limit+m.limit/10 }

// begin notes that a stream begins after a revision.
func (m *Meter) begin(after Revision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun {
		m.begun, m.since, m.last = true, after, after
	}
}

// countStream counts changes of a stream.
func (m *Meter) countStream(events []Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	marks := len(m.marks)
	for i := range events {
		if e := &events[i]; e.Revision > m.last {
			m.marks = m.add(m.marks, e)
			m.total += size(e)
		}
	}
	if n := len(events); n > 0 {
		m.last = max(m.last, events[n-1].Revision)
	}
	// Once for each mark: a failed compaction is not tried again with each batch.
	if len(m.marks) > marks {
		m.tell()
	}
}

// add adds a change to the last of some marks, or to a new one if that is full. All
// changes of a revision are in one mark.
func (m *Meter) add(marks []mark, e *Event) []mark {
	n := len(marks)
	if n == 0 || marks[n-1].bytes >= m.limit/marksPerLimit && marks[n-1].last < e.Revision {
		marks, n = append(marks, mark{}), n+1
	}
	marks[n-1].last = e.Revision
	marks[n-1].bytes += size(e)
	return marks
}

func size(e *Event) int64 { return int64(len(e.Key) + len(e.Value)) }

func (m *Meter) tell() {
	if !m.exceeds() {
		return
	}
	select {
	case m.over <- struct{}{}:
	default:
	}
}

// countReplay counts the changes of a replay from before the stream.
func (m *Meter) countReplay(past []mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.replayed {
		return
	}
	m.replayed = true
	for _, p := range past {
		m.total += p.bytes
	}
	m.marks = append(past, m.marks...)
	m.trim()
	m.tell()
}

// before returns up to which revision a replay counts; ok is false if it does not.
func (m *Meter) before() (since Revision, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since, m.begun && !m.replayed
}

// countedSource is a Source whose changes a Meter counts.
type countedSource struct {
	Source
	meter *Meter
}

// Watch implements Watcher.
func (c *countedSource) Watch(ctx context.Context, prefix string, after Revision) (Stream, error) {
	if prefix != c.meter.prefix {
		return c.Source.Watch(ctx, prefix, after)
	}
	c.meter.begin(after) // first: a replay may begin meanwhile, and needs to know up to where it counts
	stream, err := c.Source.Watch(ctx, prefix, after)
	if err != nil {
		return nil, err
	}
	return &countedStream{stream, c.meter}, nil
}

type countedStream struct {
	Stream
	meter *Meter
}

// Next implements Stream.
func (c *countedStream) Next() (Batch, error) {
	batch, err := c.Stream.Next()
	c.meter.countStream(batch.Events)
	return batch, err
}

// Replay implements Historian.
func (c *countedSource) Replay(ctx context.Context, prefix string, after, through Revision, visit func([]Event) error) error {
	since, counts := c.meter.before()
	if !counts || prefix != c.meter.prefix {
		return c.Source.Replay(ctx, prefix, after, through, visit)
	}
	var past []mark
	err := c.Source.Replay(ctx, prefix, after, through, func(events []Event) error {
		for i := range events {
			if events[i].Revision <= since {
				past = c.meter.add(past, &events[i])
			}
		}
		return visit(events)
	})
	if err == nil {
		c.meter.countReplay(past)
	}
	return err
}
