package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/levelwire/levelwire/client/cache"
)

// WaitForResourceVersion waits until the cache shows every change up to a
// resourceVersion: the one that a write returned, for instance. It returns nil
// at once if it does already, the cause of ctx when that ends before, and
// ErrStopped, joined with what Err says, when the informer stops. Nothing is asked of the server and
// nothing polls.
//
// Versions are compared as numbers (KEP-5504). Those of a server that has others are waited
// for literally. Where what the cache has reached is a number, one that is none would be
// waited for in vain: the error is ErrOtherVersions, at once. The version of a write to an object that is in the informer's
// selection comes with the event of that write; any other is known to be
// reached only when a later event or a bookmark says so, which may take about
// a minute. An informer of several namespaces has reached a version when each
// of its watches has; for one namespace there is WaitForResourceVersionIn. "" and "0" are any version: WaitForResourceVersion then waits for
// Synced.
//
// It must not be called with a resourceVersion of another cluster.
func (i *SharedInformer[T]) WaitForResourceVersion(ctx context.Context, version string) error {
	if version == "" || version == "0" {
		return i.waitForSync(ctx)
	}
	return i.await(ctx, version, nil)
}

// WaitForResourceVersionIn is WaitForResourceVersion for the objects of one namespace.
// It differs for informers of several namespaces: it does not wait for the watches of
// the others, which may have nothing to report. It is an error if the informer does not
// watch the namespace.
func (i *SharedInformer[T]) WaitForResourceVersionIn(ctx context.Context, namespace, version string) error {
	watched := slices.Index(i.ListOptions().namespaces(), namespace)
	switch {
	case watched < 0 && !i.watchesAll():
		return fmt.Errorf("informer %s does not watch the namespace %q", i.name, namespace)
	case len(i.namespaceWatches) == 1 || version == "" || version == "0":
		return i.WaitForResourceVersion(ctx, version)
	default:
		return i.await(ctx, version, i.namespaceWatches[watched])
	}
}

// watchesAll reports whether one watch covers all namespaces.
func (i *SharedInformer[T]) watchesAll() bool { return i.ListOptions().namespaces()[0] == "" }

// await waits until all watches of the informer have reached the version, or only the
// one of a namespace.
func (i *SharedInformer[T]) await(ctx context.Context, version string, only *namespaceWatch[T]) error {
	reached, at := func() bool { return covers(i.fifo.Processed(), version) }, i.fifo.Processed
	if only != nil {
		reached, at = only.reachedBy(version), only.resourceVersion
	}
	var other error // written before done is closed
	w := i.waits.enter(func() bool {
		if reached() {
			return true
		}
		other = i.otherVersion(at(), version)
		return other != nil
	})
	defer i.waits.leave(w)
	i.advanced()
	select {
	case <-w.done:
		return other
	default:
	}
	select {
	case <-w.done:
		return other
	case <-ctx.Done():
		if i.isIdle() {
			return i.notStarted(ctx)
		}
		return fmt.Errorf("informer %s has not reached resourceVersion %s but %q%s: %w", i.name, version, i.LastSyncResourceVersion(), i.lastFailure(), context.Cause(ctx))
	case <-i.done:
		return i.stoppedErr()
	}
}

// otherVersion is the error of waiting for a version that the cache will never show: it is no
// number, and what the server's lists and bookmarks have said is one. A server may have no
// numbers; before it has said anything, that is not known.
func (i *SharedInformer[T]) otherVersion(reached, version string) error {
	if isNumber(version) || !isNumber(reached) {
		return nil
	}
	return fmt.Errorf("informer %s has reached resourceVersion %s, and %q is no number: %w", i.name, reached, version, ErrOtherVersions)
}

// awaitPosition waits until everything that was queued when the DeltaFIFO was at this position is in
// the cache.
func (i *SharedInformer[T]) awaitPosition(ctx context.Context, at cache.Position) error {
	w := i.waits.enter(func() bool { return i.fifo.Passed(at) })
	defer i.waits.leave(w)
	i.advanced()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-i.done:
		return i.stoppedErr()
	}
}

// reachedBy returns a function that reports whether the cache shows every change of the
// namespace up to a version. The DeltaFIFO counts versions for all namespaces together,
// so it is asked for the place behind what this watch had queued when it reached the
// version.
func (p *namespaceWatch[T]) reachedBy(version string) func() bool {
	queued := false
	var last cache.Position
	return func() bool {
		if !queued && covers(p.resourceVersion(), version) {
			queued, last = true, p.informer.fifo.Position()
		}
		return queued && p.informer.fifo.Passed(last)
	}
}

func (i *SharedInformer[T]) waitForSync(ctx context.Context) error {
	if i.HasSynced() {
		return nil // even if ctx has ended: there is nothing to wait for
	}
	select {
	case <-i.synced:
		return nil
	case <-ctx.Done():
		if i.isIdle() {
			return i.notStarted(ctx)
		}
		return fmt.Errorf("informer %s has no complete list yet%s: %w", i.name, i.lastFailure(), context.Cause(ctx))
	case <-i.done:
		return i.stoppedErr()
	}
}

// lastFailure is the text of the reflector's last error for the error of a wait. It is not wrapped: that a list
// was answered with 404 does not say that the object does not exist for which the caller waits.
func (i *SharedInformer[T]) lastFailure() string {
	if err := i.Stats().Reflector.LastError; err != nil {
		return fmt.Sprintf(" (last error: %v)", err)
	}
	return ""
}

// stoppedErr is ErrStopped, and why the informer has stopped unless its context
// ended.
func (i *SharedInformer[T]) stoppedErr() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stoppedErrLocked()
}

// stoppedErrLocked needs mu.
func (i *SharedInformer[T]) stoppedErrLocked() error {
	if i.failed != nil {
		return fmt.Errorf("%w: %w", ErrStopped, i.failed) // which has the informer's name
	}
	return fmt.Errorf("informer %s: %w", i.name, ErrStopped)
}

// isIdle reports whether the informer was never started.
func (i *SharedInformer[T]) isIdle() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.phase == idle
}

// notStarted is the error of a wait that ended with ctx and could not have ended well.
func (i *SharedInformer[T]) notStarted(ctx context.Context) error {
	return fmt.Errorf("informer %s was never started: call factory.Start, also for an informer that was made after the last call: %w", i.name, context.Cause(ctx))
}

// ListerAfter is Lister for callers that read their own writes: it waits as
// WaitForResourceVersion does.
func (i *SharedInformer[T]) ListerAfter(ctx context.Context, version string) (Lister[T], error) {
	return i.Lister(), i.WaitForResourceVersion(ctx, version)
}

// advanced ends the waits for what the cache has reached. It is called whenever that
// may be so, and costs one load while there are no waits.
func (i *SharedInformer[T]) advanced() {
	if i.waits.count.Load() > 0 {
		i.waits.wake()
	}
}

// waits are the calls that wait for a resourceVersion. Its mu is taken before that of
// progress.
type waits struct {
	count atomic.Int32 // of all; raised before the version is looked at
	mu    sync.Mutex
	all   []*wait
}

type wait struct {
	reached func() bool   // called with waits.mu
	done    chan struct{} // closed when it has returned true
	woken   bool
}

func (w *waits) enter(reached func() bool) *wait {
	w.count.Add(1)
	entered := &wait{reached: reached, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, entered)
	return entered
}

func (w *waits) leave(left *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.DeleteFunc(w.all, func(one *wait) bool { return one == left })
	w.count.Add(-1)
}

func (w *waits) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if !one.woken && one.reached() {
			one.woken = true
			close(one.done)
		}
	}
}

// covers reports whether a cache that has reached one resourceVersion has
// surely reached the wanted one.
func covers(reached, wanted string) bool {
	order, err := resourceversion.CompareResourceVersion(reached, wanted)
	return err == nil && order >= 0 || reached == wanted
}

// isNumber reports whether a resourceVersion can be compared with others.
func isNumber(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}
