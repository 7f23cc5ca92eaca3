package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/client/reflector"
)

const (
	// catchUpGrace is for how long the watch itself may bring a version before the
	// server is asked for it.
	catchUpGrace = 5 * time.Millisecond
	// The server is not asked again for ten times as long as it took to answer, and if it
	// had no answer, for catchUpInterval, which is the most in either case.
	catchUpPause    = 10
	catchUpInterval = 250 * time.Millisecond
)

// ErrOtherVersions is the error of CatchUp if the server of the informer's resource
// says that its most recent state is older than the version. Its versions are then those
// of another storage, as those of an aggregated API server may be, and nothing compares
// the two. It is also that of WaitForResourceVersion for a version that is no number, where
// the server's are.
var ErrOtherVersions = reflector.ErrOtherVersions

// The errors of CatchUp with which its context ends say what the server last answered. With
// ErrChangesPending there are changes that the watch has not brought: it stays the answer if the
// server says nothing later. With ErrNoBookmarks the server is one that does not say how far it is.
// With ErrNoProgress alone, it could not be asked, or not in time.
var (
	ErrNoProgress     = reflector.ErrNoProgress
	ErrChangesPending = reflector.ErrChangesPending
	ErrNoBookmarks    = reflector.ErrNoBookmarks
)

// CatchUp is WaitForResourceVersion for decisions that must not wait for the next
// bookmark of a resource in which nothing changes: for those about what is not
// there. It first waits for a moment, and then asks the server whether the cache
// lacks anything, by one short watch for all callers, for a tenth of the time at the most. A
// Levelwire server answers at once, kube-apiserver after one to two seconds. Servers that send no bookmarks are only waited for.
// Where the server refuses watches, the list that begins next answers (reflector.Backoff.Max).
//
// The version may come from an object of another resource: all those of one server
// count with one counter. If those of this resource's server are lower, or it has none, the
// error is ErrOtherVersions. If they are higher, nothing tells, and CatchUp returns at once.
func (i *SharedInformer[T]) CatchUp(ctx context.Context, version string) error {
	if version == "" || version == "0" || covers(i.LastSyncResourceVersion(), version) {
		return i.WaitForResourceVersion(ctx, version)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	answered := make(chan error, 1)
	go func() {
		err := i.ask(ctx, version)
		answered <- err
		if errors.Is(err, ErrOtherVersions) {
			cancel(err)
		}
	}()
	err := i.WaitForResourceVersion(ctx, version)
	cancel(nil)
	if last := <-answered; err != nil && last != nil && !errors.Is(err, last) {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// ask asks the server until ctx ends, which it does when the cache has reached the version. It returns
// the last answer that did not help: that there are changes, if the server has said so.
func (i *SharedInformer[T]) ask(ctx context.Context, version string) (last error) {
	for wait := catchUpGrace; pause(ctx, wait); wait = 0 {
		err := i.requestProgress(ctx, version)
		if errors.Is(err, ErrOtherVersions) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			if !errors.Is(last, ErrChangesPending) || errors.Is(err, ErrChangesPending) {
				last = err
			}
			i.log.Debug("the server was asked how far the cache is", "resourceVersion", version, "error", err)
		}
	}
	return last
}

// requestProgress has the watches asked that have not reached the version. One call at a time
// asks, and the others, which wait for it, then find what it has learned.
func (i *SharedInformer[T]) requestProgress(ctx context.Context, version string) error {
	select {
	case i.asking <- struct{}{}:
		defer func() { <-i.asking }()
	case <-ctx.Done():
		return nil
	}
	if !pause(ctx, time.Until(i.askAgain)) || covers(i.LastSyncResourceVersion(), version) {
		return nil
	}
	begun := time.Now()
	var failed error
	for _, r := range i.reflectors() {
		if !covers(r.LastSyncResourceVersion(), version) {
			failed = errors.Join(failed, r.RequestProgress(ctx, version))
		}
	}
	wait := catchUpInterval
	if failed == nil {
		wait = min(catchUpPause*time.Since(begun), catchUpInterval)
	}
	i.askAgain = time.Now().Add(wait)
	return failed
}

// pause returns false if ctx ends before d has passed.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reflectors returns those that have been made.
func (i *SharedInformer[T]) reflectors() (made []*reflector.Reflector[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.namespaceWatches {
		if p.reflector != nil {
			made = append(made, p.reflector)
		}
	}
	return made
}
