package tracing

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/levelwire/levelwire/storage"
)

const (
	// followFor is how long the event of a traced write is looked for among what watches send.
	followFor = 10 * time.Second
	// maxFollowed bounds the traced writes whose events are looked for at a time: those beyond
	// it have the spans of their requests only.
	maxFollowed = 1024
	// maxApplied bounds the changes of a key that are remembered until the store answers a
	// write of it.
	maxApplied = 100
	// maxWatches bounds the watches that get a span for one event: the first.
	maxWatches = 100
)

// Events follows the events of traced writes from the store to the sockets of watches. A write
// is known by its key before the store answers it, and by its revision after that: its event may
// have been sent to watches by then. A nil *Events follows none. It is safe for concurrent use.
type Events struct {
	tracer trace.Tracer
	count  atomic.Int32 // of the followed writes

	mu     sync.Mutex // no other lock is taken while it is held, but those of OpenTelemetry
	byKey  map[string][]*write
	closed bool
}

// write is a traced write. Its fields but the first three and expire are guarded by Events.mu.
type write struct {
	key      string
	parent   trace.SpanContext
	began    time.Time
	revision storage.Revision // 0: the store has not answered yet
	inLog    time.Time        // zero: not yet, or not known to be this write's event
	applied  []applied        // what came of the key until the revision is known
	sends    []Send           // until inLog is set
	watches  int              // whose spans were made
	expire   *time.Timer
}

// applied is when an event was appended to the log of a cache.
type applied struct {
	revision storage.Revision
	at       time.Time
}

// Send is an event on its way from the log to the socket of one watch.
type Send struct {
	Key      string // in the store
	Revision storage.Revision
	Watch    uint64 // its id, as in the debug API
	User     string
	Agent    string // the User-Agent
	Type     string // ADDED, MODIFIED or DELETED, as this watch gets it

	Read, Encoded, Written time.Time
}

func newEvents(tracer trace.Tracer) *Events {
	return &Events{tracer: tracer, byKey: map[string][]*write{}}
}

// Following reports whether any event is followed: if not, there is nothing to be noted. It
// costs a load of an atomic.
func (e *Events) Following() bool { return e != nil && e.count.Load() > 0 }

// begin follows the event of a write that begins, if its request is traced. committed must be
// called with the result.
func (e *Events) begin(ctx context.Context, key string) *write {
	parent := trace.SpanContextFromContext(ctx)
	if !parent.IsSampled() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.count.Load() >= maxFollowed {
		return nil
	}
	w := &write{key: key, parent: parent, began: time.Now()}
	w.expire = time.AfterFunc(followFor, func() { e.forget(w) })
	e.byKey[key] = append(e.byKey[key], w)
	e.count.Add(1)
	return w
}

// committed says what came of a write. w may be nil.
func (e *Events) committed(w *write, revision storage.Revision, err error) {
	if w == nil {
		return
	}
	if err != nil {
		e.forget(w)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w.revision = revision
	e.finish(w)
}

// forget stops following a write.
func (e *Events) forget(w *write) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.expire.Stop()
	list := e.byKey[w.key]
	i := slices.Index(list, w)
	if i < 0 {
		return
	}
	e.count.Add(-1)
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(e.byKey, w.key)
	} else {
		e.byKey[w.key] = list
	}
}

func (e *Events) close() {
	e.mu.Lock()
	e.closed = true
	var all []*write
	for _, list := range e.byKey {
		all = append(all, list...)
	}
	e.mu.Unlock()
	for _, w := range all {
		e.forget(w)
	}
}

// Applied says that a change was appended to the log of a cache: prefix and key are its key in
// the store. It does not block.
func (e *Events) Applied(prefix, key string, revision storage.Revision) {
	if !e.Following() {
		return
	}
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.byKey[prefix+key] {
		if w.inLog.IsZero() && len(w.applied) < maxApplied && (w.revision == 0 || w.revision == revision) {
			w.applied = append(w.applied, applied{revision, now})
			e.finish(w)
		}
	}
}

// Follows reports whether a change is, or may be, that of a traced write.
func (e *Events) Follows(prefix, key string, revision storage.Revision) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.byKey[prefix+key], func(w *write) bool { return w.revision == 0 || w.revision == revision })
}

// Sent takes events that have been written to the sockets of their watches.
func (e *Events) Sent(sends []Send) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range sends {
		for _, w := range e.byKey[s.Key] {
			if len(w.sends) < maxWatches && (w.revision == 0 || w.revision == s.Revision) {
				s.Agent = strings.Clone(s.Agent) // it may be a part of a larger string
				w.sends = append(w.sends, s)
				e.finish(w)
			}
		}
	}
}

// finish makes the spans that can be made: those of an event whose revision is known, and that
// is in the log. The lock is held.
func (e *Events) finish(w *write) {
	if w.revision == 0 {
		return
	}
	ctx := trace.ContextWithSpanContext(context.Background(), w.parent)
	revision := attribute.Int64("k8s.resource_version", int64(w.revision))
	if w.inLog.IsZero() {
		i := slices.IndexFunc(w.applied, func(a applied) bool { return a.revision == w.revision })
		if i < 0 {
			return
		}
		w.inLog, w.applied = w.applied[i].at, nil
		_, span := e.tracer.Start(ctx, "watch cache", trace.WithTimestamp(w.began), trace.WithAttributes(revision, textOf("storage.key", w.key)))
		span.End(trace.WithTimestamp(w.inLog))
	}
	for _, s := range w.sends {
		if s.Revision == w.revision && w.watches < maxWatches {
			w.watches++
			e.watchSpan(ctx, w, s, revision)
		}
	}
	w.sends = nil
}

func (e *Events) watchSpan(ctx context.Context, w *write, s Send, revision attribute.KeyValue) {
	_, span := e.tracer.Start(ctx, "watch", trace.WithTimestamp(w.inLog), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		revision, attribute.Int64("watch.id", int64(s.Watch)), attribute.String("watch.event", s.Type),
		attribute.String("user.name", s.User), textOf("user_agent.original", s.Agent),
	))
	span.AddEvent("read from the log", trace.WithTimestamp(s.Read))
	span.AddEvent("encoded", trace.WithTimestamp(s.Encoded))
	span.End(trace.WithTimestamp(s.Written))
}
