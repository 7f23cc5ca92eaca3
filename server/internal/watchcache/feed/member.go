package feed

import (
	"strings"
	"sync/atomic"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// member is one cache with what the feed knows about it. The feed's lock guards
// it.
type member struct {
	cache         *watchcache.Cache
	prefix        string
	filling       bool
	removed       bool
	needsBackfill bool                     // it has been filled anew, and lacks the history before that
	otherHistory  bool                     // the cache holds objects that are not of the store's history
	epoch         int                      // of the stream; a fill from before a break is useless
	pending       []storage.Event          // held back while filling
	overflow      bool                     // pending was too long and was dropped
	changes       []watchcache.Change      // of the batch that is being applied
	repairs       []watchcache.Discrepancy // found by a check, waiting for free revisions
	loaded        atomic.Int64             // objects so far in this fill
}

// route finds the member of a key: the one with the longest prefix that ends in
// a slash. The lock is held.
func (f *Feed) route(key string) *member {
	for end := strings.LastIndexByte(key, '/'); end > 0; end = strings.LastIndexByte(key[:end], '/') {
		if m := f.members[key[:end+1]]; m != nil {
			return m
		}
	}
	return nil
}

// collect decodes an event into the member's changes. The lock is held.
func (f *Feed) collect(m *member, e *storage.Event) {
	change := watchcache.Change{Key: e.Key[len(m.prefix):], Revision: e.Revision}
	if !e.Deleted {
		o, err := m.cache.Decode(change.Key, e.Value, e.Revision)
		if err != nil {
			f.skip(e.Key, e.Revision, err)
			return
		}
		change.Object = o
	}
	delete(f.unreadable, e.Key)
	m.changes = append(m.changes, change)
}

// skip notes a value that cannot be decoded. The cache keeps the state before it,
// if there was one: controllers would act on an object that seems deleted. The key
// is logged once for as long as its values cannot be decoded. The lock is held.
func (f *Feed) skip(key string, revision storage.Revision, err error) {
	if f.unreadable[key] == revision {
		return
	}
	const most = 10_000 // keys: enough to log each once, too few to matter in memory
	_, known := f.unreadable[key]
	if len(f.unreadable) < most || known {
		f.unreadable[key] = revision
	}
	f.undecodable.Add(1)
	if !known {
		f.opts.Logger.Error("a stored value cannot be decoded and is left out: repair or delete it in the store",
			"key", key, "revision", revision, "error", err)
	}
}

// holdBack keeps an event until the member has been filled. The lock is held.
func (f *Feed) holdBack(m *member, e storage.Event) {
	if m.overflow {
		return
	}
	if len(m.pending) >= f.opts.Backlog {
		m.pending, m.overflow = nil, true
		return
	}
	m.pending = append(m.pending, e)
}
