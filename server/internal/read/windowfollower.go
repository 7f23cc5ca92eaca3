package read

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

const (
	// followInterval is the least time between two changes of a window.
	followInterval = 500 * time.Millisecond
	// pausePerRead is how many times as long as a read of the list the pause after it is.
	pausePerRead = 20
	// eventsPerRead is how many events of the log are looked at in one turn.
	eventsPerRead = 256
)

// WindowChange is what has changed in a window since the change before.
type WindowChange struct {
	// Events are of those objects of the window that are new in it or have changed, at most one
	// for each. A Deleted one leaves the window with a later change.
	Events []watchcache.Event
	// Order are the objects of the window in their order; nil: those of the change before.
	Order []*watchcache.Object
	// Total is how many objects the list has.
	Total int
	// Revision is that up to which the events have been looked at.
	Revision storage.Revision
}

// WindowReader is the request that follows a window. One goroutine calls its methods.
type WindowReader interface {
	// Begin is called before the log is read, and may wait for a turn to compute.
	Begin()
	// Admit is called before the list is read, and may wait for what a list needs.
	Admit(ctx context.Context) error
	// Send gets the window, and then each change. It calls End before it blocks.
	Send(change *WindowChange) error
	// End is called before the follower waits: it gives back what Begin and Admit have taken,
	// if that is still held.
	End()
}

// Follow sends a window, and then what changes in it, until ctx ends, a call of the reader
// fails, or the resource is not served any more, which is ErrClosed.
//
// A change of an object of the window is sent within followInterval, and nothing is for changes
// outside of it. The list is read again, for the objects that enter or leave the window, when
// one of its objects has come, gone or moved: as seldom as pausePerRead says, because a long
// list takes long to sort. Nothing is queued for a reader that is slow: the log is read when it
// is ready again.
func (w *Windows) Follow(ctx context.Context, scope Scope, opts *metav1.ListOptions, window Window, reader WindowReader) error {
	if opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return status.BadRequest("the window of one version does not change: it cannot be watched")
	}
	selection, err := scope.Selection(opts)
	if err != nil {
		return err
	}
	keyOf, err := sortKey(scope.Resource, window.SortBy)
	if err != nil {
		return err
	}
	f := &windowFollower{
		windows: w, scope: scope, opts: *opts, window: window, reader: reader, selection: selection, keyOf: keyOf,
		outdated: true, events: map[string]watchcache.Event{}, buf: make([]watchcache.Event, eventsPerRead),
	}
	defer f.stop()
	defer reader.End()
	for {
		if err := f.readList(ctx); err != nil {
			return err
		}
		if err := f.send(); err != nil {
			return err
		}
		reader.End()
		if err := f.waitForChange(ctx); err != nil {
			return err
		}
	}
}

// windowFollower follows one window. It belongs to one goroutine.
type windowFollower struct {
	windows   *Windows
	scope     Scope
	opts      metav1.ListOptions
	window    Window
	reader    WindowReader
	selection *watchcache.Selection
	keyOf     func(*watchcache.Object) string

	watcher *watchcache.Watcher // nil: the list has to be read first
	buf     []watchcache.Event
	looked  time.Time // when the log was read last

	outdated  bool             // objects have come, gone or moved since the list was read
	listed    storage.Revision // that of the list
	nextRead  time.Time
	order     []*watchcache.Object        // as sent
	reordered bool                        // order has not been sent
	shown     map[string]storage.Revision // what the reader has of each object in order
	events    map[string]watchcache.Event // that have not been sent, of objects in order
	total     int
	totalSent int
	reached   storage.Revision // of the latest event
}

// readList reads the window if that is due.
func (f *windowFollower) readList(ctx context.Context) error {
	if !f.outdated || time.Now().Before(f.nextRead) {
		return nil
	}
	if err := f.reader.Admit(ctx); err != nil {
		return err
	}
	opts := f.opts
	if f.listed != 0 {
		opts.ResourceVersion, opts.ResourceVersionMatch = FormatResourceVersion(f.reached), metav1.ResourceVersionMatchNotOlderThan
	}
	began := time.Now()
	list, err := f.windows.list(ctx, f.scope, &opts, f.window, func(s *sortedObjects) bool {
		return s.revision >= f.reached && time.Since(s.sorted) < pauseAfter(s.cost)
	})
	if err != nil {
		return err
	}
	f.nextRead = time.Now().Add(pauseAfter(time.Since(began)))
	f.outdated, f.listed, f.total = false, list.revision, list.total
	f.reached = max(f.reached, list.revision)
	if f.watcher == nil {
		cache, err := f.windows.reader.filledCache(f.scope.Resource)
		if err != nil {
			return err
		}
		if f.watcher, err = cache.Resume(ctx, watchcache.WatchOptions{Selection: f.selection, After: list.revision}); err != nil {
			return cacheError(err)
		}
	}
	f.replace(list.objects)
	return f.look(ctx) // Ready counts from a Read that has reached the end of the log
}

// pauseAfter returns for how long a list is not read again that took so long.
func pauseAfter(cost time.Duration) time.Duration { return max(followInterval, pausePerRead*cost) }

// replace makes the objects those of the window.
func (f *windowFollower) replace(objects []*watchcache.Object) {
	f.reordered = f.order == nil || !slices.EqualFunc(f.order, objects, func(a, b *watchcache.Object) bool { return a.Key == b.Key })
	f.order = append(make([]*watchcache.Object, 0, len(objects)), objects...) // not nil
	shown := make(map[string]storage.Revision, len(objects))
	clear(f.events)
	for _, o := range objects {
		known, ok := f.shown[o.Key]
		if shown[o.Key] = known; ok && known == o.Revision {
			continue
		}
		event := watchcache.Event{Type: watchcache.Modified, Object: o, Revision: o.Revision}
		if !ok {
			event.Type = watchcache.Added
		}
		f.events[o.Key] = event
	}
	f.shown = shown
}

// send sends what has changed.
func (f *windowFollower) send() error {
	change := WindowChange{Total: f.total, Revision: f.reached}
	for _, o := range f.order {
		if e, ok := f.events[o.Key]; ok {
			change.Events = append(change.Events, e)
			f.shown[o.Key] = e.Revision
		}
	}
	clear(f.events)
	if f.reordered {
		change.Order = f.order
	}
	if len(change.Events) == 0 && change.Order == nil && f.total == f.totalSent {
		return nil
	}
	f.reordered, f.totalSent = false, f.total
	return f.reader.Send(&change)
}

// waitForChange returns when there is something to send, or a list to read. The reader may compute
// then.
func (f *windowFollower) waitForChange(ctx context.Context) error {
	for {
		if err := f.waitForNews(ctx); err != nil {
			return err
		}
		f.reader.Begin()
		if err := f.look(ctx); err != nil {
			return err
		}
		due := f.outdated && !time.Now().Before(f.nextRead)
		if due || len(f.events) > 0 || f.total != f.totalSent {
			return nil
		}
		f.reader.End()
	}
}

// waitForNews waits until the log has more than was read of it, or the list may be read again, but
// for followInterval at least since the log was read. The reader does not compute meanwhile.
func (f *windowFollower) waitForNews(ctx context.Context) error {
	timer := time.NewTimer(time.Until(f.looked.Add(followInterval)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	var nextRead <-chan time.Time
	var ready <-chan struct{} // never, if the list has to be read first
	if f.watcher != nil {
		ready = f.watcher.Ready()
	}
	if f.outdated {
		timer.Reset(time.Until(f.nextRead))
		nextRead = timer.C
	}
	select {
	case <-nextRead:
	case <-ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// look reads the log up to its end. A follower whose place in it is not kept any more begins
// anew, with a list, and as seldom as it reads any list.
func (f *windowFollower) look(ctx context.Context) error {
	defer func() { f.looked = time.Now() }()
	if f.watcher != nil {
		select {
		case <-f.watcher.Ready(): // of what is read now
		default:
		}
	}
	for f.watcher != nil && ctx.Err() == nil {
		n, err := f.watcher.Read(f.buf)
		if errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			f.beginAnew()
			return nil
		}
		if n == 0 {
			return nil
		}
		for i := range n {
			f.note(&f.buf[i])
		}
		clear(f.buf[:n]) // the objects need not be kept until the next one
	}
	return ctx.Err()
}

// beginAnew forgets all that the reader has been sent.
func (f *windowFollower) beginAnew() {
	f.stop()
	f.outdated, f.listed, f.reached, f.order, f.shown, f.total = true, 0, 0, nil, nil, f.totalSent
	clear(f.events)
}

// note takes notice of a change in the list.
func (f *windowFollower) note(e *watchcache.Event) {
	f.reached = max(f.reached, e.Revision)
	if e.Revision <= f.listed {
		return // the list that was read has it
	}
	switch e.Type {
	case watchcache.Added:
		f.total++
	case watchcache.Deleted:
		f.total--
	case watchcache.Modified:
	}
	if known, ok := f.shown[e.Object.Key]; ok && known != e.Revision {
		f.events[e.Object.Key] = *e
	}
	if e.Type != watchcache.Modified || f.moves(e) {
		f.outdated = true
	}
}

// moves reports whether an object may have another place in the list than before.
func (f *windowFollower) moves(e *watchcache.Event) bool {
	return e.Previous == nil || f.keyOf(e.Previous) != f.keyOf(e.Object)
}

func (f *windowFollower) stop() {
	if f.watcher != nil {
		f.watcher.Close()
		f.watcher = nil
	}
}
