package feed

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// Source is what a Feed needs of a store.
type Source interface {
	storage.Reader
	storage.Watcher
	storage.Historian
}

// Options tune a Feed. The zero value of every member means its default.
type Options struct {
	// Prefix is the prefix that all keys of the caches share; "/registry/".
	Prefix string
	// PageSize is how many objects a fill asks the store for at a time; 1000.
	PageSize int
	// FillConcurrency is how many caches are filled at the same time; 8.
	FillConcurrency int
	// Backlog is how many events are held back for a cache while it is filled;
	// 100000. A fill during which there are more starts over.
	Backlog int
	// ReplayRevisions is how many revisions of the store's history a backfill reads
	// at most; 500000. Negative: none.
	ReplayRevisions int
	// Tombstones is how many deletions of all resources are kept in the store when
	// it is compacted; 50000. TombstoneBytes limits the bytes of their keys and
	// metadata; 32 MiB. TombstoneAge is for how long they are kept; 24 h. Up to a
	// batch more may be kept.
	Tombstones     int
	TombstoneBytes int64
	TombstoneAge   time.Duration
	// Now is the clock by which they age; time.Now.
	Now func() time.Time
	// CheckInterval is how often every cache is compared with the store; 10
	// minutes. Negative: never.
	CheckInterval time.Duration
	// Logger; nil is slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Prefix = cmp.Or(o.Prefix, "/registry/")
	o.PageSize = cmp.Or(o.PageSize, 1000)
	o.FillConcurrency = cmp.Or(o.FillConcurrency, 8)
	o.Backlog = cmp.Or(o.Backlog, 100_000)
	o.ReplayRevisions = cmp.Or(o.ReplayRevisions, 500_000)
	o.Tombstones = cmp.Or(o.Tombstones, 50_000)
	o.TombstoneBytes = cmp.Or(o.TombstoneBytes, 32<<20)
	o.TombstoneAge = cmp.Or(o.TombstoneAge, 24*time.Hour)
	o.CheckInterval = cmp.Or(o.CheckInterval, 10*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func (o *Options) tombstoneLimits() tombstone.Limits {
	return tombstone.Limits{Count: o.Tombstones, Bytes: o.TombstoneBytes, Age: o.TombstoneAge}
}
