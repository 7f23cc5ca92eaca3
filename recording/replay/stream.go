package replay

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/storage"
)

const (
	maxBatchEvents = 512
	maxBatchBytes  = 4 << 20
)

// stream is a cursor into the recording, up to where the player is.
type stream struct {
	store   *Store
	ctx     context.Context // of Watch: the stream ends with it
	prefix  string
	after   int64 // everything up to here was delivered
	entries entries
	batch   []storage.Event
	err     error
}

// entries reads the recording one revision at a time.
type entries struct {
	cursor *recording.Cursor
	next   recording.Entry
	err    error
	begun  bool
}

// revision appends the events of the next revision, if it is at most through, and
// returns it; 0 if there is none. Of several changes of an object at one revision, the
// last counts.
func (r *entries) revision(places []place, prefix string, through int64, out []storage.Event) ([]storage.Event, int64, error) {
	if !r.begun {
		r.next, r.err = r.cursor.Next()
		r.begun = true
	}
	switch {
	case errors.Is(r.err, io.EOF):
		return out, 0, nil
	case r.err != nil:
		return out, 0, r.err
	case r.next.Revision > through:
		return out, 0, nil
	}
	revision, begin := r.next.Revision, len(out)
	for r.err == nil && r.next.Revision == revision {
		if e, ok := event(places, &r.next); ok && strings.HasPrefix(e.Key, prefix) {
			if i := slices.IndexFunc(out[begin:], func(o storage.Event) bool { return o.Key == e.Key }); i >= 0 {
				out[begin+i] = e
			} else {
				out = append(out, e)
			}
		}
		r.next, r.err = r.cursor.Next()
	}
	return out, revision, nil
}

// Watch implements storage.Watcher.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if int64(after) < s.first {
		return nil, storage.ErrCompacted
	}
	return &stream{store: s, ctx: ctx, prefix: prefix, after: int64(after), entries: entries{cursor: s.reader.After(int64(after))}}, nil
}

// Next implements storage.Stream.
func (st *stream) Next() (storage.Batch, error) {
	for st.err == nil {
		if st.err = st.store.usable(st.ctx); st.err != nil {
			break
		}
		current, moved := st.store.player.movedFrom(st.after)
		if moved == nil {
			return st.read(current)
		}
		select {
		case <-moved:
		case <-st.ctx.Done():
		case <-st.store.closed:
		}
	}
	return storage.Batch{}, st.err
}

// read returns the next batch up to the player's revision.
func (st *stream) read(current int64) (storage.Batch, error) {
	st.batch = st.batch[:0]
	for size := 0; len(st.batch) < maxBatchEvents && size < maxBatchBytes; {
		before := len(st.batch)
		var revision int64
		st.batch, revision, st.err = st.entries.revision(st.store.places, st.prefix, current, st.batch)
		if st.err != nil {
			return storage.Batch{}, st.err
		}
		if revision == 0 {
			st.after = current
			break
		}
		st.after = revision
		for i := range st.batch[before:] {
			size += len(st.batch[before+i].Value)
		}
	}
	return storage.Batch{Events: st.batch, Revision: storage.Revision(st.after)}, nil
}

// Replay implements storage.Historian.
func (s *Store) Replay(ctx context.Context, prefix string, after, through storage.Revision, visit func([]storage.Event) error) error {
	switch {
	case int64(through) > s.player.current():
		return storage.ErrFutureRevision
	case int64(after) < s.first:
		return storage.ErrCompacted
	}
	reading := entries{cursor: s.reader.After(int64(after))}
	for {
		if err := s.usable(ctx); err != nil {
			return err
		}
		var batch []storage.Event
		revision := int64(0)
		for size := 0; len(batch) < maxBatchEvents && size < maxBatchBytes; {
			before := len(batch)
			var err error
			if batch, revision, err = reading.revision(s.places, prefix, int64(through), batch); err != nil {
				return err
			}
			if revision == 0 {
				break
			}
			for i := range batch[before:] {
				size += len(batch[before+i].Value)
			}
		}
		if len(batch) > 0 {
			if err := visit(batch); err != nil {
				return err
			}
		}
		if revision == 0 {
			return nil
		}
	}
}
