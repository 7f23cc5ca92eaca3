package watchcache

import (
	"context"
	"errors"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// recollection collects what a replay tells about one cache, as it is stored: only
// what is kept in the end is decoded.
type recollection struct {
	cache      *Cache
	prefix     string
	generation uint64
	through    storage.Revision // the cache's fill
	live       btree.Tree[*Object]
	latest     map[string]*stored // of the keys in kept; nil if it was deleted
	kept       []noted
	bytes      int64              // of the values in kept
	dropped    storage.Revision   // all changes up to here are not kept
	deaths     []noted            // deletions among them
	missing    storage.Revision   // all deletions up to here are not even there
	shared     sharedRevisions    // of changes that are not kept
	good       map[string]*Object // the last state of a key whose later one cannot be decoded
}

// stored is one state of a key.
type stored struct {
	revision storage.Revision
	created  storage.Revision // of the key; 0 if it has not been read from the store
	value    []byte
	unread   bool    // value was dropped, and has to be read again
	object   *Object // once it has been decoded
	broken   bool    // it cannot be
	absent   bool    // there was nothing, as the store says
}

// noted is one change. before is nil if the key did not exist, or if it has to be
// read from the store, because the change is the first of its key in what is kept.
type noted struct {
	key      string
	revision storage.Revision
	now      *stored // nil if deleted
	before   *stored
	first    bool
}

// newRecollection returns an empty one of what was before the cache's fill.
func (c *Cache) newRecollection(prefix string) *recollection {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Deletions that the log has dropped since the fill are in the graves already.
	through := min(storage.Revision(c.base.Load()), c.graves.since)
	return &recollection{
		cache: c, prefix: prefix, generation: c.generation.Load(), through: through,
		live: c.state.Load().tree, latest: map[string]*stored{}, good: map[string]*Object{},
	}
}

// note enters one change.
func (m *recollection) note(e *storage.Event) {
	if e.Revision > m.through {
		return
	}
	n := noted{key: e.Key[len(m.prefix):], revision: e.Revision}
	before, known := m.latest[n.key]
	n.before, n.first = before, !known
	if !e.Deleted {
		n.now = &stored{value: e.Value, revision: e.Revision}
		m.bytes += int64(len(e.Value))
	}
	m.latest[n.key] = n.now
	m.kept = append(m.kept, n)
	for len(m.kept) > m.cache.opts.HistoryEvents || m.bytes > m.cache.opts.HistoryBytes || m.kept[0].revision == m.dropped {
		m.drop()
		if len(m.kept) == 0 {
			return
		}
	}
}

// drop forgets the oldest change. Its value may be needed as what was before a
// later one.
func (m *recollection) drop() {
	oldest := m.kept[0]
	m.dropped = oldest.revision
	if oldest.now != nil {
		m.bytes -= int64(len(oldest.now.value))
		oldest.now.value, oldest.now.unread = nil, true
	}
	if m.latest[oldest.key] == oldest.now {
		delete(m.latest, oldest.key)
	}
	m.kept[0] = noted{}
	m.kept = m.kept[1:]
	if oldest.now != nil && len(m.kept) > 0 && m.kept[0].revision == oldest.revision {
		m.shared.add(oldest.revision)
	}
	if oldest.now != nil || m.cache.opts.ExactHistory {
		return
	}
	m.deaths = append(m.deaths, oldest)
	if len(m.deaths) > m.cache.opts.Tombstones {
		m.missing = m.deaths[0].revision
		m.deaths = m.deaths[1:]
	}
}

// recollect makes the entries that the cache is to have of what a replay after a
// revision has told.
func (m *recollection) recollect(ctx context.Context, store storage.Reader, from storage.Revision) (past, error) {
	p := past{generation: m.generation, from: max(from, m.dropped), since: max(from, m.missing), through: m.through, shared: m.shared}
	now := m.cache.opts.Now()
	for i := range m.deaths {
		e, err := m.entry(ctx, store, &m.deaths[i])
		if errors.Is(err, errUntold) {
			p.dead, p.since = nil, m.deaths[i].revision
			continue
		}
		if err != nil {
			return past{}, err
		}
		if e != nil {
			if i+1 < len(m.deaths) && m.deaths[i+1].revision == e.revision {
				e.through--
			}
			p.dead = append(p.dead, grave{e.revision, e.through, m.cache.residue(e.previous), now})
		}
	}
	for i := range m.kept {
		e, err := m.entry(ctx, store, &m.kept[i])
		if errors.Is(err, errUntold) {
			p.dead, p.entries = nil, nil
			p.from, p.since = m.kept[i].revision, m.kept[i].revision
			continue
		}
		if err != nil {
			return past{}, err
		}
		if e == nil {
			continue
		}
		if last := len(p.entries) - 1; last >= 0 && p.entries[last].revision == e.revision {
			p.entries[last].through = e.revision - 1
		}
		p.entries = append(p.entries, e)
	}
	return p, nil
}

// entry makes the entry of one change; nil if there is none, because what was
// written cannot be decoded.
func (m *recollection) entry(ctx context.Context, store storage.Reader, n *noted) (*entry, error) {
	if n.first {
		n.before = &stored{revision: n.revision - 1, unread: true}
	}
	e := &entry{revision: n.revision, through: n.revision}
	var err error
	if e.previous, err = m.decode(ctx, store, n.key, n.before, nil); err != nil {
		return nil, err
	}
	if e.previous == nil && n.before != nil && !n.before.absent {
		if e.previous, err = m.lastGood(ctx, store, n); err != nil {
			return nil, err
		}
	}
	held, _ := m.live.Get(n.key)
	if e.object, err = m.decode(ctx, store, n.key, n.now, held); err != nil {
		return nil, err
	}
	switch {
	case n.now != nil && e.object == nil:
		m.good[n.key] = e.previous // as the caches keep it that see such a value come
		return nil, nil
	case e.object == nil && e.previous == nil:
		return nil, nil
	case e.object != nil && e.object != held:
		e.object.succeed(e.previous)
	}
	return e, nil
}

// lastGood returns what is shown of a key before a change because what was
// written then cannot be decoded.
func (m *recollection) lastGood(ctx context.Context, store storage.Reader, n *noted) (*Object, error) {
	if o, known := m.good[n.key]; known {
		return o, nil
	}
	return m.cache.lastGood(ctx, store, m.prefix, n.key, n.revision)
}

// decode makes the object of a state, or takes the one over that the cache
// holds. It is nil if there is none, or if it cannot be decoded.
func (m *recollection) decode(ctx context.Context, store storage.Reader, key string, s *stored, held *Object) (*Object, error) {
	switch {
	case s == nil:
		return nil, nil
	case s.object != nil:
		return s.object, nil
	case held != nil && held.Revision == s.revision:
		s.object, s.value = held, nil
		return held, nil
	case s.unread:
		item, err := store.Get(ctx, m.prefix+key, s.revision)
		if errors.Is(err, storage.ErrNotFound) {
			s.absent, s.broken, s.unread = true, true, false
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		s.value, s.revision, s.created, s.unread = item.Value, item.Modified, item.Created, false
	}
	if !s.broken {
		o, err := m.cache.Decode(key, s.value, s.revision)
		if err == nil {
			o.created = s.created
			s.object, s.value = o, nil
			return o, nil
		}
		s.broken = true
	}
	return nil, nil
}
