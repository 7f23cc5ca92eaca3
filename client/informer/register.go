package informer

import (
	"fmt"
	"slices"
	"time"
)

// AddHandler adds a handler, at any time before the informer has stopped. One
// that comes late is first told of every object there is, as added and
// initial; what happens meanwhile follows, without gap or overlap.
func (i *SharedInformer[T]) AddHandler(handler Handler[T], opts HandlerOptions) (*Registration, error) {
	switch {
	case handler == nil:
		return nil, fmt.Errorf("informer %s: the handler is nil", i.name)
	case opts.Resync < 0 || opts.KeepEvery < 0:
		return nil, fmt.Errorf("informer %s: handler options must not be negative: %+v", i.name, opts)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase == stopped {
		return nil, fmt.Errorf("informer %s: %w", i.name, ErrStopped)
	}
	l := newListener(handler, opts, i.log)
	i.indexer.Range(func(key string, obj T) bool {
		l.push(key, notification[T]{kind: added, obj: obj, initial: true})
		return true
	})
	if i.HasSynced() {
		l.push("", notification[T]{kind: mark})
	}
	i.listeners = append(i.listeners, l)
	if i.phase == running {
		i.launch(l)
	}
	return &Registration{
		synced: l.synced, err: l.failure, metrics: l.stats,
		remove: func() <-chan struct{} { return i.remove(l) },
	}, nil
}

// remove takes the listener out and ends it. It must not take mu while a
// handler runs under it: none ever does.
func (i *SharedInformer[T]) remove(l *listener[T]) <-chan struct{} {
	l.stop()
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := slices.Index(i.listeners, l); n >= 0 {
		i.listeners = slices.Delete(i.listeners, n, n+1)
		if l.timer != nil {
			l.timer.Stop()
		}
		if !l.started.Load() {
			close(l.ended) // nobody will run it
		}
	}
	return l.ended
}

// scheduleResync has the listener told of every object again after its
// interval, over and over. The lock is held.
func (i *SharedInformer[T]) scheduleResync(l *listener[T]) {
	if l.opts.Resync <= 0 {
		return
	}
	l.timer = time.AfterFunc(l.opts.Resync, func() { i.resync(l) })
}

func (i *SharedInformer[T]) resync(l *listener[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != running || l.stopped() {
		return
	}
	i.indexer.Range(func(key string, obj T) bool {
		l.push(key, notification[T]{kind: updated, old: obj, obj: obj, resync: true})
		return true
	})
	i.scheduleResync(l)
}

// Handlers returns what each handler's queue did so far.
func (i *SharedInformer[T]) Handlers() []HandlerStats {
	i.mu.Lock()
	defer i.mu.Unlock()
	stats := make([]HandlerStats, len(i.listeners))
	for n, l := range i.listeners {
		stats[n] = l.stats()
	}
	return stats
}
