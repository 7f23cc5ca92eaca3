// Package ownwrites knows which writes of a kind this server has acknowledged, and whether
// a cache shows them yet.
package ownwrites

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Marks are the newest revisions of this server's writes of a kind. The zero value is
// ready; it is safe for concurrent use.
type Marks struct {
	written atomic.Int64 // of any write
	changed atomic.Int64 // of a write of an object that existed before
	// stuck is what the cache had reached, and 1, when a wait was given up; 0: none was.
	stuck atomic.Int64
}

// Note records the revision of a write. existed says that there was an object before.
func (m *Marks) Note(revision storage.Revision, existed bool) {
	raise(&m.written, revision)
	if existed {
		raise(&m.changed, revision)
	}
}

func raise(mark *atomic.Int64, revision storage.Revision) {
	for known := mark.Load(); known < int64(revision) && !mark.CompareAndSwap(known, int64(revision)); {
		known = mark.Load()
	}
}

// Changed returns the newest revision at which an object was replaced or deleted.
func (m *Marks) Changed() storage.Revision { return storage.Revision(m.changed.Load()) }

// MaxWait bounds how long a reader waits for a cache that is behind a write of this
// server: as long as other reads wait for a revision. A busy machine may keep a feed
// that works from running for a second, and a decision on an old state would then let
// pass what a policy that a client has just created refuses.
const MaxWait = 3 * time.Second

// Comparison compares the cache of a kind with the writes that this server has
// acknowledged. It is a small value, safe for concurrent use.
type Comparison struct {
	Marks *Marks
	Cache *watchcache.Cache
}

// Shown reports whether the cache shows every acknowledged write. It does not
// allocate.
func (c Comparison) Shown() bool {
	written := c.Marks.written.Load()
	return written == 0 || c.Cache.Reached() >= storage.Revision(written)
}

// Wait waits until the cache shows every acknowledged write, or until the wait has
// taken so long that the cache will not: the store's stream is broken, or the store
// was restored and has gone back. Later calls wait neither for that write again nor, until
// the cache moves, for others. The error is that of ctx.
func (c Comparison) Wait(ctx context.Context) error {
	written := c.Marks.written.Load()
	if c.Marks.stuck.Load() == int64(c.Cache.Reached())+1 {
		return ctx.Err()
	}
	wait, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	if _, err := c.Cache.NotOlderThan(wait, storage.Revision(written)); err != nil && ctx.Err() == nil {
		c.Marks.written.CompareAndSwap(written, 0)
		c.Marks.stuck.Store(int64(c.Cache.Reached()) + 1)
	}
	return ctx.Err()
}
