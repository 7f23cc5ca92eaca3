package epoch

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// Shift returns a store with all revisions of another one greater by offset. Revisions
// up to offset have been compacted, from the beginning. With an offset of 0 it returns
// the store itself.
func Shift(store storage.Store, offset storage.Revision) storage.Store {
	if offset == 0 {
		return store
	}
	return &Shifted{store, offset}
}

// Shifted is a store whose revisions are shifted.
type Shifted struct {
	store  storage.Store
	offset storage.Revision
}

// Unwrap returns the store that has been shifted: see storage.Innermost.
func (s *Shifted) Unwrap() storage.Store { return s.store }

// inside returns a revision of the store. 0, "now" or "the beginning", stays.
func (s *Shifted) inside(revision storage.Revision) (storage.Revision, error) {
	switch {
	case revision == 0:
		return 0, nil
	case revision <= s.offset:
		return 0, storage.ErrCompacted
	}
	return revision - s.offset, nil
}

func (s *Shifted) outside(revision storage.Revision, err error) (storage.Revision, error) {
	if err != nil {
		return 0, s.conflict(err, 0)
	}
	return revision + s.offset, nil
}

func (s *Shifted) item(item storage.KeyValue) storage.KeyValue {
	item.Modified += s.offset
	item.Created += s.offset
	return item
}

// conflict translates an error of a write that expected a revision; 0 is a create.
func (s *Shifted) conflict(err error, expect storage.Revision) error {
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	outside := &storage.ConflictError{Key: conflict.Key, Expect: expect}
	if conflict.Current != nil {
		current := s.item(*conflict.Current)
		outside.Current = &current
	}
	return outside
}

// Get implements storage.Reader.
func (s *Shifted) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	at, err := s.inside(at)
	if err != nil {
		return storage.KeyValue{}, err
	}
	item, err := s.store.Get(ctx, key, at)
	if err != nil {
		return storage.KeyValue{}, err
	}
	return s.item(item), nil
}

// List implements storage.Reader.
func (s *Shifted) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	var err error
	if opts.At, err = s.inside(opts.At); err != nil {
		return storage.Page{}, err
	}
	page, err := s.store.List(ctx, prefix, opts)
	if err != nil {
		return storage.Page{}, err
	}
	page.Revision += s.offset
	page.Items = slices.Clone(page.Items)
	for i := range page.Items {
		page.Items[i] = s.item(page.Items[i])
	}
	return page, nil
}

// Current implements storage.Reader.
func (s *Shifted) Current(ctx context.Context) (storage.Revision, error) {
	return s.outside(s.store.Current(ctx))
}

// Create implements storage.Writer.
func (s *Shifted) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	return s.outside(s.store.Create(ctx, key, value, ttl))
}

// expected returns the store's revision that a write expects, or one that no key has.
func (s *Shifted) expected(revision storage.Revision) storage.Revision {
	if inside, err := s.inside(revision); err == nil {
		return inside
	}
	return math.MaxInt64
}

// Update implements storage.Writer.
func (s *Shifted) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	revision, err := s.store.Update(ctx, key, value, s.expected(expect), ttl)
	if err != nil {
		return 0, s.conflict(err, expect)
	}
	return revision + s.offset, nil
}

// Delete implements storage.Writer.
func (s *Shifted) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	revision, err := s.store.Delete(ctx, key, s.expected(expect))
	if err != nil {
		return 0, s.conflict(err, expect)
	}
	return revision + s.offset, nil
}

// start returns the store's revision after which a stream begins. The offset itself is
// before the store's first one.
func (s *Shifted) start(after storage.Revision) (storage.Revision, error) {
	if after == s.offset {
		return 0, nil
	}
	return s.inside(after)
}

// Watch implements storage.Watcher.
func (s *Shifted) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	after, err := s.start(after)
	if err != nil {
		return nil, err
	}
	stream, err := s.store.Watch(ctx, prefix, after)
	if err != nil {
		return nil, err
	}
	return &shiftedStream{stream: stream, store: s}, nil
}

type shiftedStream struct {
	stream storage.Stream
	store  *Shifted
	events []storage.Event // of the last batch
}

// Next implements storage.Stream.
func (s *shiftedStream) Next() (storage.Batch, error) {
	batch, err := s.stream.Next()
	if err != nil {
		return storage.Batch{}, err
	}
	clear(s.events)
	s.events = s.store.shift(s.events[:0], batch.Events)
	return storage.Batch{Events: s.events, Revision: batch.Revision + s.store.offset}, nil
}

// shift appends events with shifted revisions.
func (s *Shifted) shift(to, events []storage.Event) []storage.Event {
	for _, e := range events {
		e.Revision += s.offset
		to = append(to, e)
	}
	return to
}

// Oldest implements storage.Historian.
func (s *Shifted) Oldest(ctx context.Context) (storage.Revision, error) {
	return s.outside(s.store.Oldest(ctx))
}

// Replay implements storage.Historian.
func (s *Shifted) Replay(ctx context.Context, prefix string, after, through storage.Revision, visit func([]storage.Event) error) error {
	after, err := s.start(after)
	if err != nil {
		return err
	}
	var events []storage.Event
	return s.store.Replay(ctx, prefix, after, max(through-s.offset, 0), func(run []storage.Event) error {
		clear(events)
		events = s.shift(events[:0], run)
		return visit(events)
	})
}

// Compact implements storage.Compactor.
func (s *Shifted) Compact(ctx context.Context, at storage.Revision) error {
	if at <= s.offset {
		return storage.ErrCompacted
	}
	return s.store.Compact(ctx, at-s.offset)
}

// Close implements storage.Store.
func (s *Shifted) Close() error { return s.store.Close() }
