package tracing

import "go.opentelemetry.io/otel/trace"

// originKey is a key of a controller.
type originKey struct {
	controller string
	key        any // comparable
}

// origin is why a key is in a controller's queue.
type origin struct {
	parent trace.SpanContext // the first change; invalid if there is none
	links  []trace.Link      // further changes, and the call that failed before
}

// Bounds on what is kept for calls to come. A key has at most one origin, and
// the next call takes it; more keys than that have calls without a parent.
const (
	maxOrigins = 1 << 16
	maxLinks   = 32
)

// addOrigin notes a span that caused a call. cause says how, for a link.
func (t *Tracer) addOrigin(key originKey, span trace.SpanContext, cause string) {
	if !span.IsValid() || !span.IsSampled() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.origins[key]
	if !ok {
		if len(t.origins) >= maxOrigins {
			return
		}
		o = &origin{}
		t.origins[key] = o
	}
	switch {
	case cause == causeChange && !o.parent.IsValid():
		o.parent = span
	case len(o.links) < maxLinks:
		o.links = append(o.links, trace.Link{SpanContext: span, Attributes: causes[cause]})
	}
}

// takeOrigin returns why a key is in the queue, and forgets it.
func (t *Tracer) takeOrigin(key originKey) origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.origins[key]
	if !ok {
		return origin{}
	}
	delete(t.origins, key)
	return *o
}
