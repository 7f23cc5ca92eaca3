package controller

import "github.com/levelwire/levelwire/client"

// mapping is the handler that turns changes into keys.
type mapping[T client.Object, K comparable] struct {
	fresh, low func(K) // add a key after a change, or after a first list or resync
	keys       TypedMapFunc[T, K]
	both       bool // the old state may have other keys than the new one
	when       Predicate[T]
	tracer     Tracer      // nil: none
	info       HandlerInfo // what is the same for all changes
	retries    *retries[T]
}

// OnAdd implements informer.Handler.
func (m mapping[T, K]) OnAdd(obj T, initial bool) {
	m.enqueue(Change[T]{Kind: Added, Object: obj, Initial: initial}, initial)
}

// OnUpdate implements informer.Handler.
func (m mapping[T, K]) OnUpdate(old, obj T) {
	change := Change[T]{Kind: Updated, Old: old, Object: obj}
	m.enqueue(change, change.Resync())
}

// OnDelete implements informer.Handler.
func (m mapping[T, K]) OnDelete(obj T, finalStateUnknown bool) {
	m.enqueue(Change[T]{Kind: Deleted, Object: obj, FinalStateUnknown: finalStateUnknown}, false)
}

// enqueue adds the keys of a change; low: nothing has changed since the object
// was last listed. After a panic of a MapFunc or Predicate, which goes on to the caller, the
// change is looked at again later.
func (m mapping[T, K]) enqueue(change Change[T], low bool) {
	returned := false
	defer func() {
		if !returned {
			m.retries.after(change, low)
		}
	}()
	m.addKeys(change, low)
	returned = true
}

func (m mapping[T, K]) addKeys(change Change[T], low bool) {
	if !m.when(change) {
		return
	}
	add := m.fresh
	if low {
		add = m.low
	}
	if m.tracer != nil {
		traced, end := m.trace(change, add)
		defer end()
		add = traced
	}
	if m.both && change.Kind == Updated && !low {
		m.keys(change.Old, add)
	}
	m.keys(change.Object, add)
}

// trace begins the span of a change. The returned function adds keys within it.
func (m mapping[T, K]) trace(change Change[T], add func(K)) (traced func(K), end func()) {
	info := m.info
	info.Change, info.Object, info.ResourceVersion = change.Kind, KeyOf(change.Object), change.Object.GetResourceVersion()
	enqueued, end := m.tracer.StartHandler(info)
	return func(key K) {
		enqueued(key)
		add(key)
	}, end
}
