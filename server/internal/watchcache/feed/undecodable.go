package feed

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

// undecodable are the keys whose value cannot be decoded. A cache keeps the state
// before such a value, if there was one: controllers would act on an object that
// seems deleted. All methods may be called concurrently.
type undecodable struct {
	logger *slog.Logger
	count  atomic.Int64 // of values that were skipped
	known  atomic.Int64 // len(keys), readable without the lock

	mu   sync.Mutex
	keys map[string]storage.Revision
}

// skip notes a value. Its key is logged once for as long as its values cannot be
// decoded.
func (u *undecodable) skip(key string, revision storage.Revision, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys[key] == revision {
		return
	}
	if u.keys == nil {
		u.keys = make(map[string]storage.Revision)
	}
	const most = 10_000 // keys: enough to log each once, too few to matter in memory
	_, known := u.keys[key]
	if len(u.keys) < most || known {
		u.keys[key] = revision
		u.known.Store(int64(len(u.keys)))
	}
	u.count.Add(1)
	if !known {
		u.logger.Error("a stored value cannot be decoded and is left out: repair or delete it in the store",
			"key", key, "revision", revision, "error", err)
	}
}

// forget notes that a key can be decoded again, or is gone.
func (u *undecodable) forget(key string) {
	if u.known.Load() == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.keys, key)
	u.known.Store(int64(len(u.keys)))
}
