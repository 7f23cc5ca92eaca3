package memory

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// record is one key's state. The value is shared with events and pages.
type record struct {
	value    []byte
	modified storage.Revision
	created  storage.Revision
}

// snapshot is the whole state at a revision. It never changes.
type snapshot struct {
	root     btree.Tree[record]
	revision storage.Revision
}

// Store is a storage.Store in memory. Open makes one.
type Store struct {
	// current is the newest snapshot. Reads of the present load it and take
	// no lock; it is stored under mu before a write is acknowledged.
	current atomic.Pointer[snapshot]
	// closed ends streams. Closed under mu, so that no write follows it.
	closed chan struct{}

	mu      sync.RWMutex // guards the fields below
	isOver  bool
	history history
	expiry  expiry
	waiting bool          // a stream waits for wake
	wake    chan struct{} // closed by the next write if waiting
}

var _ storage.Store = (*Store)(nil)

// Open returns an empty store at revision 1, as a new etcd is. The error names the
// option that is wrong.
func Open(opts Options) (*Store, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.EnsureDefaults()
	s := &Store{
		closed:  make(chan struct{}),
		wake:    make(chan struct{}),
		history: newHistory(opts, 1),
	}
	s.expiry.store = s
	s.current.Store(&snapshot{revision: 1})
	return s, nil
}

// Close ends all streams. It is safe to call it more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOver {
		s.isOver = true
		close(s.closed)
		s.expiry.stop()
	}
	return nil
}

// usable fails once the context has ended or the store was closed.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closed:
		return storage.ErrClosed
	default:
		return nil
	}
}

// Current implements storage.Reader.
func (s *Store) Current(ctx context.Context) (storage.Revision, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	return s.current.Load().revision, nil
}

// Get implements storage.Reader.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	state, err := s.at(ctx, at)
	if err != nil {
		return storage.KeyValue{}, err
	}
	r, ok := state.root.Get(key)
	if !ok {
		return storage.KeyValue{}, storage.ErrNotFound
	}
	return storage.KeyValue{Key: key, Value: r.value, Modified: r.modified, Created: r.created}, nil
}

// List implements storage.Reader.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	state, err := s.at(ctx, opts.At)
	if err != nil {
		return storage.Page{}, err
	}
	size := state.root.Count(prefix, opts.From)
	page := storage.Page{Revision: state.revision}
	if opts.Limit > 0 && size > opts.Limit {
		size, page.More = opts.Limit, true
	}
	page.Items = make([]storage.KeyValue, 0, size)
	if size == 0 {
		return page, nil
	}
	for key, r := range state.root.Range(prefix, opts.From) {
		kv := storage.KeyValue{Key: key, Value: r.value, Modified: r.modified, Created: r.created}
		if opts.KeysOnly {
			kv.Value = nil
		}
		page.Items = append(page.Items, kv)
		if len(page.Items) == size {
			break
		}
	}
	return page, nil
}

// at returns the state at a revision, 0 meaning now.
func (s *Store) at(ctx context.Context, at storage.Revision) (*snapshot, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	now := s.current.Load()
	switch {
	case at == 0 || at == now.revision:
		return now, nil
	case at > now.revision:
		return nil, storage.ErrFutureRevision
	}
	s.mu.RLock()
	base, events, err := s.history.replay(at)
	s.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	return &snapshot{root: applyAll(base.root, events), revision: at}, nil
}

// Oldest implements storage.Historian.
func (s *Store) Oldest(ctx context.Context) (storage.Revision, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.history.oldest(), nil
}

// Compact implements storage.Compactor.
func (s *Store) Compact(ctx context.Context, at storage.Revision) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.current.Load()
	switch {
	case s.isOver:
		return storage.ErrClosed
	case at > now.revision:
		return storage.ErrFutureRevision
	case at <= s.history.compacted:
		return storage.ErrCompacted
	}
	s.history.compact(at)
	return nil
}
