package memory

import (
	"context"
	"strings"

	"github.com/levelwire/levelwire/storage"
)

// stream is a cursor into the history. It holds no events of its own but the
// batch that it returned last, and needs no goroutine.
type stream struct {
	store  *Store
	ctx    context.Context // of Watch: the stream ends with it
	prefix string
	after  storage.Revision // everything up to here was delivered
	batch  []storage.Event  // the caller's until the next call
	err    error            // why the stream ended
}

// Watch implements storage.Watcher.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	_, err := s.history.after(after)
	s.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	return &stream{store: s, ctx: ctx, prefix: prefix, after: after}, nil
}

// Next implements storage.Stream.
func (st *stream) Next() (storage.Batch, error) {
	for st.err == nil {
		if st.err = st.store.usable(st.ctx); st.err != nil {
			break
		}
		events, wake, err := st.store.eventsAfter(st.after)
		if err != nil {
			st.err = err
			break
		}
		if len(events) > 0 {
			return st.deliver(events), nil
		}
		select {
		case <-wake:
		case <-st.ctx.Done():
		case <-st.store.closed:
		}
	}
	return storage.Batch{}, st.err
}

// deliver advances over events and copies those in the range.
func (st *stream) deliver(events []storage.Event) storage.Batch {
	st.batch = st.batch[:0]
	for i := range events {
		if strings.HasPrefix(events[i].Key, st.prefix) {
			st.batch = append(st.batch, events[i])
		}
	}
	st.after = events[len(events)-1].Revision
	return storage.Batch{Events: st.batch, Revision: st.after}
}

// eventsAfter returns a run of events or, if there are none yet, a channel
// that the next write closes. The events below the log's end never change, so
// they may be read without the lock.
func (s *Store) eventsAfter(revision storage.Revision) ([]storage.Event, <-chan struct{}, error) {
	s.mu.RLock()
	events, err := s.history.after(revision)
	wake, waiting := s.wake, s.waiting
	s.mu.RUnlock()
	if err != nil || len(events) > 0 || waiting {
		return events, wake, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	events, err = s.history.after(revision)
	if err == nil && len(events) == 0 {
		s.waiting = true
	}
	return events, s.wake, err
}

// Replay implements storage.Historian.
func (s *Store) Replay(ctx context.Context, prefix string, after, through storage.Revision, visit func([]storage.Event) error) error {
	if current := s.current.Load().revision; through > current {
		return storage.ErrFutureRevision
	}
	for cursor := (&stream{store: s, ctx: ctx, prefix: prefix, after: after}); cursor.after < through; {
		if err := s.usable(ctx); err != nil {
			return err
		}
		s.mu.RLock()
		events, err := s.history.after(cursor.after)
		s.mu.RUnlock()
		if err != nil {
			return err
		}
		if over := int(events[len(events)-1].Revision - through); over >= len(events) {
			return nil // the next event is after through
		} else if over > 0 {
			events = events[:len(events)-over] // one event for each revision
		}
		if batch := cursor.deliver(events); len(batch.Events) > 0 {
			if err := visit(batch.Events); err != nil {
				return err
			}
		}
	}
	return nil
}
