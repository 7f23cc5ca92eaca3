package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// progress orders the resourceVersions that the store reaches by the stream that a
// Reflector follows with those that RequestProgress learns beside it. The lock is held
// while Options.OnProgress is called, and no other lock is taken before it.
type progress struct {
	mu sync.Mutex
	// lists counts complete lists and differences: after one the versions may be others.
	lists int
	// lateBookmarks: a watch of a second has ended without a bookmark.
	lateBookmarks atomic.Bool
	// pendingSince is since when short watches have begun with a change, or when the most
	// recent state was last compared while they did; zero: the last one did not.
	pendingSince time.Time
	questions
}

// The errors of RequestProgress.
var (
	// ErrNoProgress: the server has not said how far the store is. It sends no bookmarks, could
	// not be asked, did not answer in time, or there are changes on their way.
	ErrNoProgress = errors.New("the server has not said how far the cache is")
	// ErrOtherVersions: the most recent state that the server knows is older than the wanted
	// version, which is one of another storage then.
	ErrOtherVersions = errors.New("the resourceVersion is not one of this resource's server")
	// ErrChangesPending is an ErrNoProgress: there are changes that the followed watch has not
	// brought yet.
	ErrChangesPending = fmt.Errorf("%w: changes are on their way", ErrNoProgress)
	// ErrNoBookmarks is an ErrNoProgress: the server has ended a watch well, and in time,
	// without a bookmark.
	ErrNoBookmarks = fmt.Errorf("%w: it sends no bookmarks", ErrNoProgress)
	errNoList      = fmt.Errorf("there is no list yet: %w", ErrNoProgress)
)

// A server is asked to keep the watch of RequestProgress open for a second, and if it ends that
// without a bookmark, for three from then on. Servers send a bookmark two seconds before the end.
// A Levelwire server sends that of a watch of a second at once, and kube-apiserver none.
const (
	shortProgressWatch  = time.Second
	longerProgressWatch = 3 * time.Second
)

// pendingPatience is for how long changes may be on their way before the most recent state is
// compared with the wanted version, and after what time it is compared again. Changes that the
// followed watch brings come sooner.
const pendingPatience = time.Second

// RequestProgress asks the server whether the store lacks anything, for a store of a
// resource that rarely changes: its version is otherwise as old as the last change or
// bookmark. It opens a short watch beside the one that the Reflector follows, from the
// version that the store has reached, and closes it with its first event. If that is a
// bookmark, nothing has changed, and the store has reached the bookmark's version. A change
// proves nothing: others of the same version may follow it. The followed watch brings it,
// and the error is ErrChangesPending. It is ErrOtherVersions if the server's most recent state
// is older than wanted; while there are changes on their way, that is looked at once a second.
//
// Where the server refuses watches, so that lists stand for them, it waits for a list that
// begins after the call. Versions of lists that have none are ErrOtherVersions.
//
// It may be called at any time, and calls the source concurrently with Run.
func (r *Reflector[T]) RequestProgress(ctx context.Context, wanted string) error {
	if asked, err := r.askPolls(ctx, wanted); asked {
		return err
	}
	through, err := r.askOnce(ctx)
	pending := errors.Is(err, ErrChangesPending)
	compare := r.compareNow(pending)
	switch {
	case err == nil && covers(through, wanted):
		return nil
	case errors.Is(err, errNoList), !compare:
		return err
	}
	watched := err
	// The server's cache lags, or its versions are others. It reads the most recent state
	// from its storage, and its cache has usually come as far by then.
	if err := r.compareMostRecent(ctx, wanted); err != nil {
		if pending && !errors.Is(err, ErrOtherVersions) {
			return watched
		}
		return err
	}
	if watched != nil { // there are changes, or the server sends no bookmarks, say
		return watched
	}
	if through, err = r.askOnce(ctx); err == nil && !covers(through, wanted) {
		err = fmt.Errorf("%w: its cache lags", ErrNoProgress)
	}
	return err
}

// compareNow reports whether the most recent state is to be compared with a wanted version after
// a short watch, which began with a change (pending) or did not. A server in which something
// changes all the time may never answer otherwise, and its versions may be others all the same.
func (r *Reflector[T]) compareNow(pending bool) bool {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	since := r.progress.pendingSince
	switch {
	case !pending:
		r.progress.pendingSince = time.Time{}
	case since.IsZero():
		r.progress.pendingSince = time.Now()
		return false
	case time.Since(since) < pendingPatience:
		return false
	default:
		r.progress.pendingSince = time.Now()
	}
	return true
}

// askOnce opens one short watch, and returns the version up to which nothing has changed.
func (r *Reflector[T]) askOnce(ctx context.Context) (through string, err error) {
	r.progress.mu.Lock()
	from, lists := r.LastSyncResourceVersion(), r.progress.lists
	r.progress.mu.Unlock()
	if unset(from) {
		return "", errNoList
	}
	ev, err := r.askForBookmark(ctx, from)
	switch {
	case errors.Is(err, ErrNoProgress):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNoProgress, err)
	case ev.Type != apiwatch.Bookmark:
		return "", fmt.Errorf("%w after %s", ErrChangesPending, from)
	}
	if through = versionOf(ev.Object); through == "" || !leadsOn(from, through) {
		return "", fmt.Errorf("%w: a bookmark of resourceVersion %.40q follows %.40q", ErrNoProgress, ev.Object.GetResourceVersion(), from)
	}
	r.learn(from, through, lists)
	return through, nil
}

// askForBookmark opens a short watch and returns its first event.
func (r *Reflector[T]) askForBookmark(ctx context.Context, from string) (ev client.WatchEvent[T], err error) {
	if !r.progress.lateBookmarks.Load() {
		ev, err = r.firstEvent(ctx, from, shortProgressWatch)
		if !errors.Is(err, io.EOF) {
			return ev, err
		}
		r.progress.lateBookmarks.Store(true)
	}
	// A bookmark says what the server's cache has reached. kube-apiserver's, of a resource in which nothing changes, reaches
	// nothing until the most recent state is read. If that fails, the watch may still begin with an event.
	_, _ = r.readMostRecent(ctx)
	return r.firstEvent(ctx, from, longerProgressWatch)
}

func (r *Reflector[T]) firstEvent(ctx context.Context, from string, lifetime time.Duration) (client.WatchEvent[T], error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*lifetime, errSilent)
	defer cancel()
	seconds := int64(lifetime / time.Second)
	stream, err := r.streams.Watch(ctx, metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return client.WatchEvent[T]{}, because(ctx, err)
	}
	defer stream.Close()
	opened := time.Now()
	ev, err := stream.Next()
	switch {
	case err == nil:
		return ev, nil
	case errors.Is(err, io.EOF) && ctx.Err() == nil && time.Since(opened) >= lifetime/2: // a server that stops ends it sooner
		return ev, fmt.Errorf("%w: %w", ErrNoBookmarks, err)
	default:
		return ev, because(ctx, err)
	}
}

// compareMostRecent fails if the most recent state that the server has is older than wanted.
func (r *Reflector[T]) compareMostRecent(ctx context.Context, wanted string) error {
	version, err := r.readMostRecent(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoProgress, err)
	case older(version, wanted):
		return fmt.Errorf("%w: %s, and the most recent state is %s", ErrOtherVersions, wanted, version)
	default:
		return nil
	}
}

// readMostRecent returns the version of the most recent state, which the server reads from its storage.
func (r *Reflector[T]) readMostRecent(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.ListTimeout, errSilent)
	defer cancel()
	list, err := r.source.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", because(ctx, err)
	}
	return list.ResourceVersion, nil
}

// learn notes that nothing has changed after one version up to another, unless the followed
// watch has moved on, or there was a list.
func (r *Reflector[T]) learn(from, through string, lists int) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	if r.progress.lists == lists && r.LastSyncResourceVersion() == from && older(from, through) {
		r.move(through)
	}
}

// reached notes what the followed watch has reached.
func (r *Reflector[T]) reached(version string) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	r.move(version)
}

// relisted notes what a list, or a difference, has reached; "": the resource is gone.
func (r *Reflector[T]) relisted(version string) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	r.progress.lists++
	r.progress.unversioned = r.unversioned
	r.move(version)
	r.progress.answer()
}

// move moves the version. progress.mu is held.
func (r *Reflector[T]) move(version string) {
	if r.version.move(version) && r.opts.OnProgress != nil {
		r.counts.panics.Call(r.opts.Logger, "OnProgress", func() { r.opts.OnProgress(version) })
	}
}
