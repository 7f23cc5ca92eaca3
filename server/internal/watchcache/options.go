package watchcache

import (
	"cmp"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// Options tunes a Cache. The zero value of every member means its default.
type Options struct {
	// HistoryEvents is how many events the log keeps; 32768.
	HistoryEvents int
	// HistoryBytes is how much memory, in bytes, these may take; 64 MiB. At least
	// one event is kept whatever its size.
	HistoryBytes int64
	// Budget, if set, bounds history and tombstones further, by what lives and by
	// what all caches of the budget keep together.
	Budget *Budget
	// BlockBytes is how much memory, in bytes, the blocks that lists share may take;
	// 160 MiB. The least recently used are evicted first. Negative: none is kept.
	BlockBytes int64
	// ExactHistory disables coalesced history: a watch from before the log expires,
	// as does one that is slower than the log. By default such a watch gets the
	// latest change of each object, and the deletions.
	ExactHistory bool
	// Tombstones is how many deletions are kept after the log has evicted them;
	// 50000. A watch from before the oldest expires.
	Tombstones int
	// TombstoneBytes is how much memory, in bytes, they may take; 32 MiB.
	TombstoneBytes int64
	// TombstoneAge is for how long they are kept; 24 h.
	TombstoneAge time.Duration
	// Now is the clock by which they age; time.Now.
	Now func() time.Time
	// FreshnessWait is how long reads wait for a revision that the cache has not
	// reached; 3 s, as Kubernetes' clients expect.
	FreshnessWait time.Duration
	// Applied is called with each change that was appended to the log before watchers are woken,
	// and must not block; nil: it is not called.
	Applied func(storePrefix, key string, revision storage.Revision)
	// CompressObjects holds objects compressed that have not been written lately: those
	// whose latest event has left the log. Secrets are never compressed.
	CompressObjects bool
	// CompressAtOnce has CompressObjects compress each object right after it was written,
	// whether or not that saves memory: for tests.
	CompressAtOnce bool
	// Decode makes an object from a stored value; nil means the resource's own
	// codec.
	Decode state.Decode
}

func (o Options) withDefaults(res *resource.Resource) Options {
	o.HistoryEvents = cmp.Or(o.HistoryEvents, 32768)
	o.HistoryBytes = cmp.Or(o.HistoryBytes, 64<<20)
	o.BlockBytes = cmp.Or(o.BlockBytes, 160<<20)
	o.Tombstones = cmp.Or(o.Tombstones, 50_000)
	o.TombstoneBytes = cmp.Or(o.TombstoneBytes, 32<<20)
	o.TombstoneAge = cmp.Or(o.TombstoneAge, 24*time.Hour)
	o.FreshnessWait = cmp.Or(o.FreshnessWait, 3*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Decode == nil {
		o.Decode = state.Decoder(res)
	}
	return o
}

// tombstoneLimits bounds the tombstones.
func (c *Cache) tombstoneLimits() tombstone.Limits {
	limits := tombstone.Limits{Count: c.opts.Tombstones, Bytes: c.opts.TombstoneBytes, Age: c.opts.TombstoneAge}
	if c.opts.Budget != nil {
		limits.Bytes = min(limits.Bytes, max(minTombstones, c.counters.objectBytes.Load()))
	}
	return limits
}
