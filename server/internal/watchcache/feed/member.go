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
	progress      *watchcache.Progress // the cache's own, while it is served and filled again; else nil
	initial       bool                 // it was there when Run began
	filling       bool                 // a fill writes to the cache, and apply does not
	removed       bool
	needsBackfill bool                     // it has been filled anew, and lacks the history before that
	lacksHistory  bool                     // its log begins with the fill that is running
	otherHistory  bool                     // the cache holds objects that are not of the store's history
	epoch         int                      // of the stream; a fill from before a break is useless
	pending       []storage.Event          // held back while filling
	overflow      bool                     // pending was too long and was dropped
	changes       []watchcache.Change      // of the batch that is being applied
	repairs       []watchcache.Discrepancy // found by a check, waiting for free revisions
	loaded        atomic.Int64             // objects so far in this fill
}

// continues reports whether the events that were held back continue a list that was
// begun in epoch. The lock is held.
func (m *member) continues(epoch int) bool { return !m.removed && m.epoch == epoch && !m.overflow }

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

// decode appends an event to changes, decoded. It takes no lock of the feed's.
func (f *Feed) decode(m *member, e *storage.Event, changes []watchcache.Change) []watchcache.Change {
	change := watchcache.Change{Key: e.Key[len(m.prefix):], Revision: e.Revision}
	if !e.Deleted {
		o, err := m.cache.Decode(change.Key, e.Value, e.Revision)
		if err != nil {
			f.undecodable.skip(e.Key, e.Revision, err)
			return changes
		}
		change.Object = o
	}
	f.undecodable.forget(e.Key)
	return append(changes, change)
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
