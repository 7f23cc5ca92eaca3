package replay

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/storage"
)

// Store is a storage.Store that shows a recording up to where its Player is. Nothing can
// be written to it.
type Store struct {
	reader *recording.Reader
	player *Player
	places []place
	first  int64
	closed chan struct{}
	once   sync.Once
	states states
}

var _ storage.Store = (*Store)(nil)

// Options configures Open.
type Options struct {
	// Layout is how the server keeps objects.
	Layout Layout
	// At is the version at which the replay begins. Default: the first one.
	At int64
}

// Open returns a store and what plays it, paused. unserved are resources of the recording
// that the server does not serve. The reader stays the caller's, and must be open for as
// long as the store is used.
func Open(r *recording.Reader, opts Options) (s *Store, p *Player, unserved []string, err error) {
	if p, err = newPlayer(r, opts.At); err != nil {
		return nil, nil, nil, err
	}
	s = &Store{reader: r, player: p, closed: make(chan struct{})}
	s.places, unserved = places(r.Resources(), opts.Layout)
	s.first, _ = r.Start()
	s.states.store = s
	return s, p, unserved, nil
}

// Close ends all streams.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.states.drop()
	return nil
}

func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closed:
		return storage.ErrClosed
	default:
		return ctx.Err()
	}
}

// Current implements storage.Reader.
func (s *Store) Current(ctx context.Context) (storage.Revision, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	return storage.Revision(s.player.current()), nil
}

// Get implements storage.Reader.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	state, err := s.at(ctx, at)
	if err != nil {
		return storage.KeyValue{}, err
	}
	o, ok := state.tree.Get(key)
	if !ok {
		return storage.KeyValue{}, storage.ErrNotFound
	}
	return s.keyValue(key, o), nil
}

// List implements storage.Reader.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	state, err := s.at(ctx, opts.At)
	if err != nil {
		return storage.Page{}, err
	}
	page := storage.Page{Revision: storage.Revision(state.revision)}
	for key, o := range state.tree.Range(prefix, opts.From) {
		if opts.Limit > 0 && len(page.Items) == opts.Limit {
			page.More = true
			break
		}
		if opts.KeysOnly {
			o.value = nil
			page.Items = append(page.Items, storage.KeyValue{Key: key, Modified: storage.Revision(o.revision), Created: storage.Revision(o.created)})
			continue
		}
		page.Items = append(page.Items, s.keyValue(key, o))
	}
	return page, nil
}

func (s *Store) keyValue(key string, o object) storage.KeyValue {
	return storage.KeyValue{Key: key, Value: s.places[o.resource].value(o.value), Modified: storage.Revision(o.revision), Created: storage.Revision(o.created)}
}

// at returns the state at a revision; 0 is the current one.
func (s *Store) at(ctx context.Context, at storage.Revision) (state, error) {
	if err := s.usable(ctx); err != nil {
		return state{}, err
	}
	current := s.player.current()
	switch {
	case at == 0:
		at = storage.Revision(current)
	case int64(at) > current:
		return state{}, storage.ErrFutureRevision
	case int64(at) < s.first:
		return state{}, storage.ErrCompacted
	}
	return s.states.at(ctx, int64(at))
}

// Oldest implements storage.Historian.
func (s *Store) Oldest(ctx context.Context) (storage.Revision, error) {
	return storage.Revision(s.first), s.usable(ctx)
}

// Create implements storage.Writer: it fails with storage.ErrReadOnly, as the other writes do.
func (s *Store) Create(_ context.Context, key string, _ []byte, _ time.Duration) (storage.Revision, error) {
	return 0, fmt.Errorf("create %s: %w", key, storage.ErrReadOnly)
}

// Update implements storage.Writer.
func (s *Store) Update(_ context.Context, key string, _ []byte, _ storage.Revision, _ time.Duration) (storage.Revision, error) {
	return 0, fmt.Errorf("update %s: %w", key, storage.ErrReadOnly)
}

// Delete implements storage.Writer.
func (s *Store) Delete(_ context.Context, key string, _ storage.Revision) (storage.Revision, error) {
	return 0, fmt.Errorf("delete %s: %w", key, storage.ErrReadOnly)
}

// Compact implements storage.Compactor.
func (s *Store) Compact(context.Context, storage.Revision) error { return storage.ErrReadOnly }
