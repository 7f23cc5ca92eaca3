package informer

import (
	"fmt"
	"slices"
	"time"
)

// AddHandler adds a handler, at any time before the informer has stopped. A
// handler added after the start first gets OnAdd, with initial true, for every
// object of the cache. What happens meanwhile follows, without gap or overlap.
func (i *SharedInformer[T]) AddHandler(handler Handler[T], opts HandlerOptions) (*Registration, error) {
	switch {
	case handler == nil:
		return nil, fmt.Errorf("informer %s: the handler is nil", i.name)
	case opts.MaxUnmergedEvents < 0:
		return nil, fmt.Errorf("informer %s: MaxUnmergedEvents must not be negative: %d", i.name, opts.MaxUnmergedEvents)
	}
	if opts.Resync == 0 {
		opts.Resync = i.resyncEvery
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase == stopped {
		return nil, fmt.Errorf("informer %s: %w", i.name, ErrStopped)
	}
	if i.failed != nil {
		return nil, i.failed
	}
	i.fifo.RaiseMaxDeltas(opts.MaxUnmergedEvents)
	l := newListener(handler, opts, i.log, i.handlers.Go)
	l.begin(i.indexer.List(), i.HasSynced())
	i.listeners = append(i.listeners, l)
	if i.phase == running {
		i.scheduleResync(l)
	}
	return &Registration{
		synced: l.synced, ended: l.ended, err: l.failure, stats: l.stats,
		remove: func() { i.remove(l) },
	}, nil
}

// remove takes the listener out and ends it.
func (i *SharedInformer[T]) remove(l *listener[T]) {
	l.end()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(l)
}

// drop removes a listener that has ended. The lock is held.
func (i *SharedInformer[T]) drop(l *listener[T]) {
	if n := slices.Index(i.listeners, l); n >= 0 {
		i.listeners = slices.Delete(i.listeners, n, n+1)
	}
	if l.timer != nil {
		l.timer.Stop()
	}
}

// scheduleResync pushes every object to the listener again after each of its
// intervals. The lock is held.
func (i *SharedInformer[T]) scheduleResync(l *listener[T]) {
	if l.opts.Resync <= 0 {
		return
	}
	l.timer = time.AfterFunc(l.opts.Resync, func() { i.resync(l) })
}

func (i *SharedInformer[T]) resync(l *listener[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != running || !slices.Contains(i.listeners, l) {
		return
	}
	alive := true
	i.indexer.Range(func(key string, obj T) bool {
		alive = l.push(key, notification[T]{kind: updated, old: obj, obj: obj, resync: true})
		return alive
	})
	if !alive {
		i.drop(l)
		return
	}
	i.scheduleResync(l)
}
