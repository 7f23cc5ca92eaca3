package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// Create implements storage.Writer.
func (s *Store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	return s.write(ctx, storage.Event{Key: key, Value: value}, 0, ttl)
}

// Update implements storage.Writer.
func (s *Store) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if expect <= 0 {
		return 0, fmt.Errorf("update of %s: the expected revision is %d, it must be above zero", key, expect)
	}
	return s.write(ctx, storage.Event{Key: key, Value: value}, expect, ttl)
}

// Delete implements storage.Writer.
func (s *Store) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	if expect <= 0 {
		return 0, fmt.Errorf("delete of %s: the expected revision is %d, it must be above zero", key, expect)
	}
	return s.write(ctx, storage.Event{Key: key, Deleted: true}, expect, 0)
}

// write makes the change e if the key's last change is expect, 0 meaning that
// the key does not exist.
func (s *Store) write(ctx context.Context, e storage.Event, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return 0, storage.ErrClosed
	}
	now := s.current.Load()
	if found, ok := now.root.Get(e.Key); found.modified != expect {
		conflict := &storage.ConflictError{Key: e.Key, Expect: expect}
		if ok {
			conflict.Current = &storage.KeyValue{Key: e.Key, Value: found.value, Modified: found.modified, Created: found.created}
		}
		return 0, conflict
	}
	e.Revision = s.commit(now, e)
	s.expiry.set(e.Key, ttl)
	return e.Revision, nil
}

// commit gives e the next revision and makes it the newest state. Called with
// mu held.
func (s *Store) commit(now *snapshot, e storage.Event) storage.Revision {
	e.Revision = now.revision + 1
	s.history.add(e, now.root)
	s.current.Store(&snapshot{root: apply(now.root, e), revision: e.Revision})
	if s.waiting {
		s.waiting = false
		close(s.wake)
		s.wake = make(chan struct{})
	}
	return e.Revision
}
