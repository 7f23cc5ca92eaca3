package rbac

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

const (
	// largeObject is the size, in stored bytes, from which a role or a binding is decoded by the write that
	// stores it. Smaller ones are decoded in microseconds.
	largeObject = 16 << 10
	// largeRole is from how many combinations on the rules of a role are compiled by that write.
	largeRole = 1000
	// maxPreparedBytes is how much is kept that has not been applied.
	maxPreparedBytes = 64 << 20
	// maxPreparedWrites is how many writes of one object are kept: an event is compared with each.
	maxPreparedWrites = 8
	// preparedRoom is about how many times as long as the stored form a definition is together with it, while it
	// is made, and combinationBytes what a combination of compiled rules takes.
	preparedRoom     = 4
	combinationBytes = 200
	// keepPrepared is for how long a definition is kept after the store has answered: longer than decisions
	// wait for a cache to show a write.
	keepPrepared = 30 * time.Second
)

// reader is one that follows the events of roles and bindings, or a set of these.
type reader uint32

const (
	indexReader reader = 1 << iota
	historyReader
)

// preparer has what large roles and bindings say that this server is writing. All decisions wait while an
// event is applied, and a binding of megabytes takes tens of milliseconds to be decoded: so its writer
// does that, before the store is asked. An event whose object is the one that was written takes the
// definition. All other objects are decoded when their events are applied: those of other servers, and those
// that would take more room than there is. It is safe for concurrent use.
type preparer struct {
	readers atomic.Uint32 // that have read the caches
	writes  atomic.Int64  // in byKey
	decode  func(context.Context, registry.Registry, *watchcache.Object) (definition, error)

	mu       sync.Mutex
	byKey    map[preparedKey][]*preparedWrite // in the order in which they were prepared
	bytes    int                              // of all, and of those that are being prepared
	maxBytes int
}

type preparedKey struct {
	resource string
	objectKey
}

// preparedWrite is a write that was sent to the store.
type preparedWrite struct {
	key        preparedKey
	stored     []byte
	definition *definition
	bytes      int
	readers    reader      // that have not read its event
	unanswered bool        // the write has ended, and it is not known how
	expiry     *time.Timer // nil until the write has ended
}

func newPreparer() *preparer {
	return &preparer{decode: define, byKey: map[preparedKey][]*preparedWrite{}, maxBytes: maxPreparedBytes}
}

// follow has what is written from now on prepared for a reader.
func (p *preparer) follow(r reader) { p.readers.Or(uint32(r)) }

// define returns what the object of an event says to a reader.
func (p *preparer) define(ctx context.Context, by reader, r registry.Registry, o *watchcache.Object) (*definition, error) {
	if d := p.take(by, r.Resource(), o); d != nil {
		return d, nil
	}
	d, err := p.decode(ctx, r, o)
	return &d, err
}

// take returns the definition of the first write that has the event's object and that the reader
// has not read yet, or nil.
func (p *preparer) take(by reader, res *resource.Resource, o *watchcache.Object) *definition {
	if p.writes.Load() == 0 {
		return nil
	}
	key := preparedKey{res.Plural, keyOfObject(o)}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.byKey[key] {
		if w.readers&by == 0 || !res.IsCached(w.stored, int64(o.Revision), o.JSON) {
			continue
		}
		if w.readers &^= by; w.readers == 0 {
			p.drop(w)
		}
		return w.definition
	}
	return nil
}

// prepare is the registry.StoreHook of a kind.
func (p *preparer) prepare(ctx context.Context, s *source, key objectKey, stored []byte) func(registry.Outcome) {
	readers := reader(p.readers.Load())
	if readers == 0 || s.binding && len(stored) < largeObject {
		return nil // before they follow the events, readers read all objects anyway
	}
	res, room := s.registry.Resource(), preparedRoom*len(stored)
	if !p.reserve(room) {
		return nil
	}
	w := &preparedWrite{key: preparedKey{res.Plural, key}, stored: stored, readers: readers}
	defer func() { p.keep(w, room) }()
	if w.definition = prepareDefinition(ctx, res, key.namespace, stored); w.definition == nil {
		return nil
	}
	w.bytes = len(stored) + w.definition.bytes() + w.definition.combinations()*combinationBytes
	return func(outcome registry.Outcome) { p.answered(w, outcome) }
}

// prepareDefinition decodes the stored form of a role or a binding, and compiles the rules. It returns nil if that takes no
// time, and for what cannot be decoded.
func prepareDefinition(ctx context.Context, res *resource.Resource, namespace string, stored []byte) *definition {
	object, err := res.DecodeInPlace(ctx, stored)
	if err != nil {
		return nil
	}
	d, err := says(object, namespace)
	if err != nil || len(stored) < largeObject && d.combinations() < largeRole {
		return nil
	}
	d.detach()
	if d.compiled != nil {
		d.compiled()
	}
	return &d
}

// reserve takes room for a write, if there is.
func (p *preparer) reserve(bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes+bytes > p.maxBytes {
		p.dropUnanswered()
	}
	if p.bytes+bytes > p.maxBytes {
		return false
	}
	p.bytes += bytes
	return true
}

// keep gives back the room that was reserved for a write, and keeps it if it has a definition and there is room.
func (p *preparer) keep(w *preparedWrite, reserved int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= reserved
	if w.definition == nil || p.bytes+w.bytes > p.maxBytes || len(p.byKey[w.key]) >= maxPreparedWrites {
		return
	}
	p.bytes += w.bytes
	p.byKey[w.key] = append(p.byKey[w.key], w)
	p.writes.Add(1)
}

// answered drops a write that was refused. Another one is dropped when its event has been read, and if
// that does not come, after a while.
func (p *preparer) answered(w *preparedWrite, outcome registry.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case outcome == registry.Refused:
		p.drop(w)
	case slices.Contains(p.byKey[w.key], w):
		w.unanswered = outcome == registry.Unknown
		w.expiry = time.AfterFunc(keepPrepared, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.drop(w)
		})
	}
}

// dropUnanswered makes room: a client that goes away leaves writes of which it is not known
// whether there will be an event. mu is held.
func (p *preparer) dropUnanswered() {
	for _, writes := range p.byKey {
		for _, w := range slices.Clone(writes) {
			if w.unanswered {
				p.drop(w)
			}
		}
	}
}

// drop forgets a write, if it is kept. mu is held.
func (p *preparer) drop(w *preparedWrite) {
	writes := p.byKey[w.key]
	i := slices.Index(writes, w)
	if i < 0 {
		return
	}
	if w.expiry != nil {
		w.expiry.Stop()
	}
	p.bytes -= w.bytes
	p.writes.Add(-1)
	if len(writes) == 1 {
		delete(p.byKey, w.key)
		return
	}
	p.byKey[w.key] = slices.Delete(writes, i, i+1)
}
