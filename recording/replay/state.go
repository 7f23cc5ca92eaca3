package replay

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/recording"
)

// object is one object of a state, as it was recorded.
type object struct {
	value             []byte
	revision, created int64
	resource          int
}

// state is everything at a revision, by the keys of the store. It never changes.
type state struct {
	tree     btree.Tree[object]
	revision int64
}

// keepState is for how long the last state is kept after it was read: as long as a
// server takes to read all its pages.
const keepState = 30 * time.Second

// states rebuilds states from the recording: from the last checkpoint before, or from
// the last state that was read.
type states struct {
	store *Store

	mu    sync.Mutex // held while a state is built
	last  state
	timer *time.Timer
}

// at returns the state at a revision between the first and the current one.
func (s *states) at(ctx context.Context, revision int64) (state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.revision != revision {
		base := s.last
		if base.revision == 0 || base.revision > revision {
			var err error
			if base, err = s.checkpoint(revision); err != nil {
				return state{}, err
			}
		}
		next, err := s.forward(ctx, base, revision)
		if err != nil {
			return state{}, err
		}
		s.last = next
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(keepState, s.drop)
	return s.last, nil
}

// drop forgets the last state.
func (s *states) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = state{}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// checkpoint reads the last intact checkpoint at or before a revision.
func (s *states) checkpoint(revision int64) (state, error) {
	for {
		batch := btree.Tree[object]{}.Batch()
		from, err := s.store.reader.Checkpoint(revision, func(o recording.Object) error {
			if p := &s.store.places[o.Resource]; p.served {
				batch.Set(p.prefix+o.Key, object{value: o.Value, revision: o.Revision, created: o.Created, resource: o.Resource})
			}
			return nil
		})
		var damage *recording.DamageError
		if errors.As(err, &damage) && from > s.store.first {
			revision = from - 1
			continue
		}
		return state{batch.Tree(), from}, err
	}
}

// forward applies the entries up to a revision.
func (s *states) forward(ctx context.Context, base state, revision int64) (state, error) {
	batch, places := base.tree.Batch(), s.store.places
	for cursor, n := s.store.reader.After(base.revision), 0; ; n++ {
		e, err := cursor.Next()
		if errors.Is(err, io.EOF) || err == nil && e.Revision > revision {
			return state{batch.Tree(), revision}, nil
		}
		if err != nil {
			return state{}, err
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return state{}, ctx.Err()
		}
		if e.Type != recording.Set && e.Type != recording.Delete || !places[e.Resource].served {
			continue
		}
		key := places[e.Resource].prefix + e.Key
		if e.Type == recording.Delete {
			batch.Delete(key)
			continue
		}
		batch.Set(key, object{value: e.Value, revision: e.Revision, created: e.Created, resource: e.Resource})
	}
}
