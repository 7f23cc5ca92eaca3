package rbac

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

const (
	// largeObject is the size, in stored bytes, from which a role or a binding is decoded by the write that
	// stores it. Smaller ones are decoded in microseconds.
	largeObject = 16 << 10
	// maxPreparedBytes is how much is kept that has not been applied, and namespaceShare the part of it that
	// several writes of one namespace may have.
	maxPreparedBytes = 64 << 20
	namespaceShare   = 4
	// roomWait is for how long a write waits for that, longer than one that is not applied is kept.
	roomWait = 2 * keepPrepared
	// maxPreparedWrites is how many writes of one object are kept: an event is compared with each.
	maxPreparedWrites = 8
	// preparedRoom is about how many times as long as the stored form a definition is together with it, while it
	// is made.
	preparedRoom = 4
	// keepPrepared is for how long a definition is kept after the store has answered: longer than decisions
	// wait for a cache to show a write (ownwrites.MaxWait).
	keepPrepared = 5 * time.Second
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
// for which there was no room in time. It is safe for concurrent use.
type preparer struct {
	readers    atomic.Uint32 // that follow the caches
	writes     atomic.Int64  // in byKey
	decode     func(context.Context, registry.Registry, *watchcache.Object) (definition, error)
	isBound    func(role objectKey) bool
	room       *compiledRoom // of what it compiles
	unprepared prometheus.Counter
	keepFor    time.Duration // keepPrepared, but in tests

	mu          sync.Mutex
	byKey       map[preparedKey][]*preparedWrite // in the order in which they were prepared
	bytes       int                              // of all, and of those that are being prepared
	byNamespace map[string]int                   // the same; without a namespace: ""
	maxBytes    int
	freed       chan struct{} // closed when there is more room; nil unless a write waits for that
}

type preparedKey struct {
	resource string
	objectKey
}

// preparedWrite is a write that was sent to the store, or is about to be.
type preparedWrite struct {
	key        preparedKey
	stored     []byte
	definition *definition
	bytes      int         // that it has of the preparer's
	readers    reader      // that have not read its event
	unanswered bool        // the write has ended, and it is not known how
	expiry     *time.Timer // nil until the write has ended
}

func newPreparer(isBound func(role objectKey) bool, room *compiledRoom) *preparer {
	return &preparer{
		decode: define, isBound: isBound, room: room, keepFor: keepPrepared, maxBytes: maxPreparedBytes,
		byKey: map[preparedKey][]*preparedWrite{}, byNamespace: map[string]int{},
		unprepared: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "levelwire_authorization_unprepared_writes_total",
			Help: "Writes of large roles and bindings for which there was no room to be decoded before decisions wait for that.",
		}),
	}
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
	key, json := preparedKey{res.Plural, keyOfObject(o)}, o.JSON()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.byKey[key] {
		if w.readers&by == 0 || !res.IsCached(w.stored, int64(o.Revision), json) {
			continue
		}
		if w.readers &^= by; w.readers == 0 {
			p.drop(w)
		}
		p.wake()
		return w.definition
	}
	return nil
}

// prepare is the registry.StoreHook of a kind.
func (p *preparer) prepare(ctx context.Context, s *source, key objectKey, stored []byte) func(registry.Outcome) {
	readers := reader(p.readers.Load())
	if readers == 0 || len(stored) < largeObject {
		return nil // before they follow the events, readers read all objects anyway
	}
	res := s.registry.Resource()
	w := &preparedWrite{key: preparedKey{res.Plural, key}, stored: stored, readers: readers}
	if !p.await(ctx, w, preparedRoom*len(stored)) {
		p.unprepared.Inc()
		return nil
	}
	kept := false
	defer func() {
		if !kept {
			p.release(w)
		}
	}()
	if w.definition = decodeStored(ctx, res, key.namespace, stored); w.definition == nil {
		return nil
	}
	p.compile(w)
	if kept = p.keep(w); !kept {
		return nil
	}
	return func(outcome registry.Outcome) { p.answered(w, outcome) }
}

// decodeStored decodes the stored form of a role or a binding. It returns nil if it cannot be decoded.
func decodeStored(ctx context.Context, res *resource.Resource, namespace string, stored []byte) *definition {
	object, err := res.DecodeInPlace(ctx, stored)
	if err != nil {
		return nil
	}
	d, err := says(object, namespace)
	if err != nil {
		return nil
	}
	d.detach()
	return &d
}

// compile compiles the rules of a role that is bound, if there is room for that, and gives back what is not needed
// any more. The rules of other roles may never be asked.
func (p *preparer) compile(w *preparedWrite) {
	bytes := len(w.stored) + w.definition.bytes()
	if rules := w.definition.compiled; rules != nil && p.isBound(w.key.objectKey) && p.reserve(w, bytes+rules.keys*keyBytes) == nil {
		rules.compile(p.room)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resize(w, bytes)
}

// await is reserve that waits until there is room, but not for long: writes that are about to be applied have it.
func (p *preparer) await(ctx context.Context, w *preparedWrite, bytes int) bool {
	freed := p.reserve(w, bytes)
	if freed == nil || bytes > p.maxBytes {
		return freed == nil
	}
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	timer := time.NewTimer(roomWait)
	defer timer.Stop()
	for freed != nil {
		select {
		case <-freed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
		freed = p.reserve(w, bytes)
	}
	return true
}

// reserve makes the room that a write has as large as it needs. If there is not so much, it returns what is closed
// when there may be.
func (p *preparer) reserve(w *preparedWrite, bytes int) (freed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fits(w, bytes) {
		p.dropNeedless()
	}
	if p.fits(w, bytes) {
		p.resize(w, bytes)
		return nil
	}
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed
}

// fits reports whether there is room for what a write needs. One may have all that there is, and several of a
// namespace a part, so that there is room for those of others. mu is held.
func (p *preparer) fits(w *preparedWrite, bytes int) bool {
	others := p.byNamespace[w.key.namespace] - w.bytes
	return p.bytes-w.bytes+bytes <= p.maxBytes && (others == 0 || others+bytes <= p.maxBytes/namespaceShare)
}

// resize makes the room that a write has larger or smaller. mu is held.
func (p *preparer) resize(w *preparedWrite, bytes int) {
	more := bytes - w.bytes
	w.bytes = bytes
	p.bytes += more
	if p.byNamespace[w.key.namespace] += more; p.byNamespace[w.key.namespace] == 0 {
		delete(p.byNamespace, w.key.namespace)
	}
	if more < 0 {
		p.wake()
	}
}

// wake has the writes that wait for room look again. mu is held.
func (p *preparer) wake() {
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// release gives back the room of a write that is not kept.
func (p *preparer) release(w *preparedWrite) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resize(w, 0)
}

// keep keeps a write for the readers, unless there are many of its object.
func (p *preparer) keep(w *preparedWrite) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byKey[w.key]) >= maxPreparedWrites {
		return false
	}
	p.byKey[w.key] = append(p.byKey[w.key], w)
	p.writes.Add(1)
	return true
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
		p.wake()
		w.expiry = time.AfterFunc(p.keepFor, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.drop(w)
		})
	}
}

// dropNeedless makes room. What the Index has read, decisions do not wait for; and a client that goes away leaves
// writes of which it is not known whether there will be an event. mu is held.
func (p *preparer) dropNeedless() {
	for _, writes := range p.byKey {
		for _, w := range slices.Clone(writes) {
			if w.unanswered || w.readers&indexReader == 0 {
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
	p.resize(w, 0)
	p.writes.Add(-1)
	if len(writes) == 1 {
		delete(p.byKey, w.key)
		return
	}
	p.byKey[w.key] = slices.Delete(writes, i, i+1)
}
