package read

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// ErrClosed ends a watch whose resource is no longer served.
var ErrClosed = watchcache.ErrClosed

// Watch is one watch: what a client asked for, checked, and once it is open the
// cursor in the cache's history that its events are read from. It is used by one
// goroutine at a time, and must not be copied once it is open.
type Watch struct {
	reader     *Reader
	cache      *watchcache.Cache
	selection  *watchcache.Selection // nil once it is open
	revision   storage.Revision      // that the client knows; 0 if it did not say
	mostRecent bool                  // the request has no resourceVersion
	initial    bool                  // it begins with the state as ADDED events
	lifetime   time.Duration

	visible  Visibility // nil: the watch is not filtered
	cursor   cursor
	deadline time.Time

	wantsBookmarks bool
	endAtGaps      bool
	initialEndDue  bool // the bookmark that ends the initial events has not been sent
	bookmarks      bookmarkSchedule
	// catchUpDeadline is until when the cache must reach revision; zero if it has.
	catchUpDeadline time.Time
}

// cursor is a watchcache.Watcher, or several.
type cursor interface {
	Read(buf []watchcache.Event) (int, error)
	Initial() bool
	InCoalescedHistory() bool
	TakeInitial() (watchcache.Snapshot, *watchcache.Selection)
	Bookmark() storage.Revision
	Cursor() watchcache.Cursor
	Close()
}

// Watch checks what a watch request asks for. Its errors are the answer to the
// request; those of Open and Read are for the stream that has begun by then.
func (r *Reader) Watch(scope Scope, opts *metav1.ListOptions) (w Watch, err error) {
	sel, err := scope.parse(opts, validateWatch)
	if err != nil {
		return w, err
	}
	w = Watch{reader: r, visible: scope.Visible, wantsBookmarks: opts.AllowWatchBookmarks, mostRecent: opts.ResourceVersion == ""}
	if w.revision, err = parseResourceVersion(opts.ResourceVersion); err != nil {
		return w, err
	}
	if w.selection, err = scope.selection(sel); err != nil {
		return w, err
	}
	if w.cache, err = r.filledCache(scope.Resource); err != nil {
		return w, err
	}
	if opts.SendInitialEvents != nil {
		w.initial = *opts.SendInitialEvents
	} else {
		// What clients asked for before the option existed.
		w.initial = w.revision == 0
	}
	w.lifetime = r.watchLifetime(opts.TimeoutSeconds)
	return w, nil
}

// watchLifetime returns how long a watch lasts. Watches that do not say get a random
// time, so that those of a restarted server do not all end at once.
func (r *Reader) watchLifetime(timeoutSeconds *int64) time.Duration {
	if timeoutSeconds != nil && *timeoutSeconds < 0 {
		return time.Nanosecond // it ends at once, as in Kubernetes
	}
	if timeoutSeconds != nil && *timeoutSeconds > 0 {
		const century = 100 * 365 * 24 * 3600 // as good as for ever, and does not overflow a Duration
		return time.Duration(min(*timeoutSeconds, century)) * time.Second
	}
	return time.Duration(float64(r.config.MinWatchTimeout) * (1 + rand.Float64()))
}

// EndAtGaps has the watch end before it would go on with less than every change. It is called
// before Open.
func (w *Watch) EndAtGaps() { w.endAtGaps = true }

// BeginsCoalesced reports whether the watch, which is open, may begin with less than every
// change since the version that it was asked for.
func (w *Watch) BeginsCoalesced() bool {
	return w.cursor.InCoalescedHistory() || !w.initial && w.revision > 0 && w.cache.HasGapAfter(w.revision)
}

// Open places the cursor where the watch begins. It waits for the initial state, until
// the watch's deadline at most. Unless it fails, the caller must Close the watch.
func (w *Watch) Open(ctx context.Context, waker watchcache.Waker) error {
	now := time.Now()
	w.deadline = now.Add(w.lifetime)
	w.bookmarks = newBookmarkSchedule(now, w.deadline, rand.Float64())
	var err error
	if w.cursor, err = w.resume(ctx, waker); err != nil {
		return cacheError(err)
	}
	w.initialEndDue = w.initial && w.wantsBookmarks
	w.expectRevision(time.Now())
	return nil
}

func (w *Watch) resume(ctx context.Context, waker watchcache.Waker) (cursor, error) {
	opts := watchcache.WatchOptions{Selection: w.selection, After: w.revision, Waker: waker, EndAtGaps: w.endAtGaps}
	w.selection = nil // the watcher keeps what it needs of it
	if w.initial || w.mostRecent {
		// Other watches, most of those that a restarted server gets, wait for nothing:
		// a deadline would leave a part of itself in the request's context.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, w.deadline)
		defer cancel()
	}
	switch {
	case w.initial:
		snapshot, err := w.initialState(ctx)
		if err != nil {
			return nil, err
		}
		opts.Initial = &snapshot
	case w.mostRecent:
		current, err := w.reader.storeOf(w.cache.Resource()).Current(ctx)
		if err != nil {
			return nil, err
		}
		opts.After = current
	case w.revision == 0:
		opts.After = w.cache.Current().Revision()
	}
	if w.visible != nil {
		return w.resumeVisible(ctx, opts)
	}
	return w.cache.Resume(ctx, opts)
}

// initialState is the snapshot whose objects come first.
func (w *Watch) initialState(ctx context.Context) (watchcache.Snapshot, error) {
	switch {
	case w.mostRecent:
		return w.reader.latest(ctx, w.cache)
	case w.revision == 0:
		return w.cache.Current(), nil
	}
	return notOlderThan(ctx, w.cache, w.revision)
}

// Read fills buf with the next events and returns how many there were. 0 means that
// the cache will call the waker when there are more. It never blocks. Its errors are
// for the client, but for ErrClosed, an ordinary end.
func (w *Watch) Read(buf []watchcache.Event) (int, error) {
	n, err := w.cursor.Read(buf)
	if filtered, ok := w.cursor.(*visibleWatcher); ok && n == 0 && filtered.bookmark && !filtered.lagging {
		filtered.bookmark = false
		w.bookmarks.periodic = time.Now() // what was sent had old versions, which the client may resume from
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		err = cacheError(err)
	}
	return n, err
}

// InInitialEvents reports whether events of the initial state remain to be read.
func (w *Watch) InInitialEvents() bool { return w.cursor.Initial() }

// Begun reports whether the initial events, if there are any, and the bookmark that
// ends them have been taken.
func (w *Watch) Begun() bool { return !w.initialEndDue && !w.cursor.Initial() }

// InCoalescedHistory reports whether a Read may take as long as there are changes to
// be sorted or looked through. Other watches must not wait for it.
func (w *Watch) InCoalescedHistory() bool { return w.cursor.InCoalescedHistory() }

// SharesInitial reports whether TakeInitial may be called.
func (w *Watch) SharesInitial() bool { return w.visible == nil }

// TakeInitial hands over the initial state, of which nothing must have been read, and
// what is selected of it, to a caller that sends it by other means. Read goes on with
// the changes after it.
func (w *Watch) TakeInitial() (watchcache.Snapshot, *watchcache.Selection) {
	return w.cursor.TakeInitial()
}

// Deadline is when the watch ends.
func (w *Watch) Deadline() time.Time { return w.deadline }

// initialEndCheck is how often a watch checks whether the bookmark that ends the
// initial events may be sent, while the cache has not come far enough.
const initialEndCheck = time.Second

// UntilDue returns how long a caller may sleep if nothing happens.
func (w *Watch) UntilDue() time.Duration {
	wait := time.Until(w.deadline)
	if filtered, ok := w.cursor.(*visibleWatcher); ok && filtered.lagging {
		return max(min(wait, catchUpCheck), 0) // no bookmark can be sent before
	}
	if w.initialEndDue {
		wait = min(wait, initialEndCheck)
	}
	if !w.catchUpDeadline.IsZero() {
		wait = min(wait, time.Until(w.catchUpDeadline), catchUpCheck)
	} else if w.wantsBookmarks {
		wait = min(wait, time.Until(w.bookmarks.next()))
	}
	return max(wait, 0)
}

// Close ends the cursor.
func (w *Watch) Close() { w.cursor.Close() }

// Cursor returns where the watch is, which must be open.
func (w *Watch) Cursor() watchcache.Cursor { return w.cursor.Cursor() }

// Requested returns the resourceVersion that the request named; 0 if it named none.
func (w *Watch) Requested() storage.Revision { return w.revision }
