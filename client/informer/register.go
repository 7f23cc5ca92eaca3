package informer

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// AddHandler adds a handler, at any time before the informer has stopped. A
// handler added after the start first gets OnAdd, with initial true, for every
// object of the cache. What happens meanwhile follows, without gap or overlap.
//
// The error is ErrStopped after the informer has stopped, what Err says if the
// informer cannot run, or names what is wrong with opts. A handler may be added
// more than once: it then has as many Registrations, and calls.
func (i *SharedInformer[T]) AddHandler(handler Handler[T], opts HandlerOptions) (*Registration, error) {
	switch {
	case isNil(handler):
		return nil, fmt.Errorf("informer %s: the handler is nil", i.name)
	case opts.MaxUnmergedEvents < 0:
		return nil, fmt.Errorf("informer %s: MaxUnmergedEvents must not be negative: %d", i.name, opts.MaxUnmergedEvents)
	}
	if opts.Resync > 0 && opts.Resync < minResync {
		return nil, fmt.Errorf("informer %s: HandlerOptions.Resync %v is below %v", i.name, opts.Resync, minResync)
	}
	if opts.Resync == 0 {
		opts.Resync = i.resyncEvery
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase == stopped {
		return nil, i.stoppedErrLocked()
	}
	if i.failed != nil {
		return nil, i.failed
	}
	i.fifo.RaiseMaxDeltas(opts.MaxUnmergedEvents)
	l := newListener(handler, opts, i.log, i.handlers.Go)
	if i.phase == running {
		i.compareCalls(l)
	}
	l.begin(i.indexer.List(), i.HasSynced())
	i.listeners = append(i.listeners, l)
	if i.phase == running {
		i.scheduleResync(l)
	}
	return &Registration{
		synced: l.synced, ended: l.ended, err: l.failure, stats: l.stats, flush: func() <-chan struct{} { return i.flush(l) },
		remove: func() { i.remove(l) },
	}, nil
}

// compareCalls has the objects of each call compared, if that is asked for: it is known when the
// informer starts, and nothing is called before. The lock is held.
func (i *SharedInformer[T]) compareCalls(l *listener[T]) {
	if detector := i.mutations; detector != nil {
		l.calling = detector.calling
		l.called = func(n notification[T]) { detector.called(l.opts.Name, n) }
	}
}

// flush returns a channel that is closed when the listener's handler has been called for
// all that the cache shows. It is not if the handler has ended before. The lock keeps the
// mark behind the notifications of what the cache shows.
func (i *SharedInformer[T]) flush(l *listener[T]) <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase == stopped {
		return nil
	}
	return l.flush()
}

// remove takes the listener out and ends it.
func (i *SharedInformer[T]) remove(l *listener[T]) {
	l.end()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(l)
}

// maxFailedHandlers bounds the ended handlers that Stats shows.
const maxFailedHandlers = 16

// dropFailed removes a listener that wants no more notifications. It stays in
// Stats if it failed. The lock is held.
func (i *SharedInformer[T]) dropFailed(l *listener[T]) {
	i.drop(l)
	if l.failure() == nil {
		return // its Remove is about to drop it
	}
	i.failedHandlers.Add(1)
	if len(i.failedListeners) == maxFailedHandlers {
		i.failedListeners = slices.Delete(i.failedListeners, 0, 1)
	}
	i.failedListeners = append(i.failedListeners, l)
}

// drop removes a listener that has ended. The lock is held.
func (i *SharedInformer[T]) drop(l *listener[T]) {
	same := func(other *listener[T]) bool { return other == l }
	i.listeners = slices.DeleteFunc(i.listeners, same)
	i.failedListeners = slices.DeleteFunc(i.failedListeners, same)
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
		i.dropFailed(l)
		return
	}
	i.scheduleResync(l)
}

// isNil reports whether a handler is nil, or a nil pointer in an interface, of which every
// call would fail.
func isNil(handler any) bool {
	v := reflect.ValueOf(handler)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
