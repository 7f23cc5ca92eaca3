package backfill

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// Options describe the cache that a Collector works for.
type Options struct {
	Resource *resource.Resource
	Decode   state.Decode
	// Generation of the cache's log, and the revision with which the log begins:
	// later events are ignored.
	Generation uint64
	Through    storage.Revision
	// Current is the cache's state; objects in it are not decoded again.
	Current btree.Tree[*state.Object]
	// MaxEvents and MaxBytes limit the events that are kept, MaxTombstones the
	// deletions before them; there are none if ExactHistory is set.
	MaxEvents     int
	MaxBytes      int64
	MaxTombstones int
	ExactHistory  bool
	// Now is the clock by which tombstones age.
	Now func() time.Time
}

// Collector collects the events of one cache from a replay of the store's
// history, as they are stored: only those that are kept in the end are decoded.
type Collector struct {
	opts    Options
	latest  map[string]*value // of the keys in kept; nil if the key was deleted
	kept    []change
	bytes   int64            // of the values in kept
	dropped storage.Revision // no change up to here is in kept
	// deletions are those that kept has dropped, all of them after missing.
	deletions []change
	missing   storage.Revision
	shared    eventlog.SharedRevisions // of changes that are not kept
	// lastDecoded is the last state of a key whose later values cannot be decoded.
	lastDecoded map[string]*state.Object
}

// value is one stored value of a key.
type value struct {
	revision storage.Revision
	created  storage.Revision // of the key; 0 if it has not been read from the store
	data     []byte
	unread   bool          // data was dropped, and must be read again
	object   *state.Object // once data has been decoded
	broken   bool          // data cannot be decoded
	absent   bool          // the key did not exist
}

// change is one change of a key. before is nil if the key did not exist, or if
// first is set: the change is the first of its key in what is kept, and the value
// before it must be read from the store.
type change struct {
	key      string
	revision storage.Revision
	after    *value // nil if deleted
	before   *value
	first    bool
}

// NewCollector returns an empty collector.
func NewCollector(opts Options) *Collector {
	return &Collector{opts: opts, latest: map[string]*value{}, lastDecoded: map[string]*state.Object{}}
}

// Through returns the last revision that the collector wants.
func (c *Collector) Through() storage.Revision { return c.opts.Through }

// Add adds one event. Events must come in the order of their revisions.
func (c *Collector) Add(e *storage.Event) {
	if e.Revision > c.opts.Through {
		return
	}
	added := change{key: e.Key[len(c.opts.Resource.StorePrefix):], revision: e.Revision}
	before, known := c.latest[added.key]
	added.before, added.first = before, !known
	if !e.Deleted {
		added.after = &value{data: e.Value, revision: e.Revision}
		c.bytes += int64(len(e.Value))
	}
	c.latest[added.key] = added.after
	c.kept = slices.Insert(c.kept, c.placeOf(&added), added)
	for len(c.kept) > c.opts.MaxEvents || c.bytes > c.opts.MaxBytes || c.kept[0].revision == c.dropped {
		c.drop()
		if len(c.kept) == 0 {
			return
		}
	}
}

// placeOf returns where a change belongs in kept: at the end, but the deletions of a revision
// come before the rest, as in the log of a cache that has seen them happen.
func (c *Collector) placeOf(added *change) int {
	at := len(c.kept)
	for added.after == nil && at > 0 && c.kept[at-1].revision == added.revision && c.kept[at-1].after != nil {
		at--
	}
	return at
}

// drop drops the oldest change. Its value may be the state before a later one,
// and is then read again.
func (c *Collector) drop() {
	oldest := c.kept[0]
	c.dropped = oldest.revision
	if oldest.after != nil {
		c.bytes -= int64(len(oldest.after.data))
		oldest.after.data, oldest.after.unread = nil, true
	}
	if c.latest[oldest.key] == oldest.after {
		delete(c.latest, oldest.key)
	}
	c.kept[0] = change{}
	c.kept = c.kept[1:]
	if oldest.after != nil && len(c.kept) > 0 && c.kept[0].revision == oldest.revision {
		c.shared.Add(oldest.revision)
	}
	if oldest.after != nil || c.opts.ExactHistory {
		return
	}
	c.deletions = append(c.deletions, oldest)
	if len(c.deletions) > c.opts.MaxTombstones {
		c.missing = c.deletions[0].revision
		c.deletions = c.deletions[1:]
	}
}

// Finish decodes what has been kept of a replay after a revision. The collector
// must not be used afterwards.
func (c *Collector) Finish(ctx context.Context, store storage.Reader, from storage.Revision) (EarlierHistory, error) {
	h := EarlierHistory{
		Generation: c.opts.Generation, From: max(from, c.dropped), Since: max(from, c.missing), Through: c.opts.Through, Shared: c.shared,
	}
	if err := c.addTombstones(ctx, store, &h); err != nil {
		return EarlierHistory{}, err
	}
	for i := range c.kept {
		e, err := c.entry(ctx, store, &c.kept[i])
		if errors.Is(err, state.ErrUnknownState) {
			h.Tombstones, h.Entries = nil, nil
			h.From, h.Since = c.kept[i].revision, c.kept[i].revision
			continue
		}
		if err != nil {
			return EarlierHistory{}, err
		}
		if e == nil {
			continue
		}
		if last := len(h.Entries) - 1; last >= 0 && h.Entries[last].Revision == e.Revision {
			h.Entries[last].Through = e.Revision - 1
		}
		h.Entries = append(h.Entries, e)
	}
	return h, nil
}

// addTombstones makes the tombstones of the deletions that kept has dropped.
func (c *Collector) addTombstones(ctx context.Context, store storage.Reader, h *EarlierHistory) error {
	now := c.opts.Now()
	for i := range c.deletions {
		e, err := c.entry(ctx, store, &c.deletions[i])
		if errors.Is(err, state.ErrUnknownState) {
			h.Tombstones, h.Since = nil, c.deletions[i].revision
			continue
		}
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if i+1 < len(c.deletions) && c.deletions[i+1].revision == e.Revision {
			e.Through--
		}
		h.Tombstones = append(h.Tombstones, tombstone.Tombstone{
			Revision: e.Revision, Through: e.Through, Last: e.Previous.TombstoneMetadata(c.opts.Resource), Added: now,
		})
	}
	return nil
}

// entry makes the entry of one change. It is nil if the value cannot be decoded:
// a cache then keeps the state before.
func (c *Collector) entry(ctx context.Context, store storage.Reader, ch *change) (*eventlog.Entry, error) {
	if ch.first {
		ch.before = &value{revision: ch.revision - 1, unread: true}
	}
	e := &eventlog.Entry{Revision: ch.revision, Through: ch.revision}
	var err error
	if e.Previous, err = c.decode(ctx, store, ch.key, ch.before, nil); err != nil {
		return nil, err
	}
	if e.Previous == nil && ch.before != nil && !ch.before.absent {
		if e.Previous, err = c.lastDecodable(ctx, store, ch); err != nil {
			return nil, err
		}
	}
	held, _ := c.opts.Current.Get(ch.key)
	if e.Object, err = c.decode(ctx, store, ch.key, ch.after, held); err != nil {
		return nil, err
	}
	switch {
	case ch.after != nil && e.Object == nil:
		c.lastDecoded[ch.key] = e.Previous // as a cache that reads such a value from the stream
		return nil, nil
	case e.Object == nil && e.Previous == nil:
		return nil, nil
	case e.Object != nil && e.Object != held:
		e.Object.InheritFrom(e.Previous)
	}
	return e, nil
}

// lastDecodable returns the state of a key before a change, when the value before
// the change cannot be decoded.
func (c *Collector) lastDecodable(ctx context.Context, store storage.Reader, ch *change) (*state.Object, error) {
	if o, known := c.lastDecoded[ch.key]; known {
		return o, nil
	}
	return c.opts.Decode.LastDecodable(ctx, store, c.opts.Resource.StorePrefix, ch.key, ch.revision)
}

// decode makes the object of a value, or takes held, the cache's object, if it
// has the same revision. It is nil if the key did not exist, or the value cannot be
// decoded.
func (c *Collector) decode(ctx context.Context, store storage.Reader, key string, v *value, held *state.Object) (*state.Object, error) {
	switch {
	case v == nil:
		return nil, nil
	case v.object != nil:
		return v.object, nil
	case held != nil && held.Revision == v.revision:
		v.object, v.data = held, nil
		return held, nil
	case v.unread:
		item, err := store.Get(ctx, c.opts.Resource.StorePrefix+key, v.revision)
		if errors.Is(err, storage.ErrNotFound) {
			v.absent, v.broken, v.unread = true, true, false
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		v.data, v.revision, v.created, v.unread = item.Value, item.Modified, item.Created, false
	}
	if !v.broken {
		if o, err := c.opts.Decode(key, v.data, v.revision); err == nil {
			o.CreatedRevision = v.created
			v.object, v.data = o, nil
			return o, nil
		}
		v.broken = true
	}
	return nil, nil
}
