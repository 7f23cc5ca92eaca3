package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// WaitForResourceVersion waits until the cache shows every change up to a
// resourceVersion: the one that a write returned, for instance. It returns nil
// at once if it does already, the cause of ctx when that ends before, and
// ErrStopped when the informer stops. Nothing is asked of the server and
// nothing polls.
//
// Versions are compared as numbers (KEP-5504); one that is no number is waited
// for literally. The version of a write to an object that is in the informer's
// selection comes with the event of that write; any other is known to be
// reached only when a later event or a bookmark says so, which may take about
// a minute. An informer of several namespaces has reached a version when each
// of its watches has. "" and "0" are any version: WaitForResourceVersion then waits for
// Synced.
//
// It must not be called with a resourceVersion of another cluster.
func (i *SharedInformer[T]) WaitForResourceVersion(ctx context.Context, version string) error {
	if version == "" || version == "0" {
		return i.waitForSync(ctx)
	}
	w := i.waits.enter(version)
	defer i.waits.leave(w)
	i.advanced()
	select {
	case <-w.reached:
		return nil
	default:
	}
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("informer %s has not reached resourceVersion %s but %q: %w", i.name, version, i.LastSyncResourceVersion(), context.Cause(ctx))
	case <-i.done:
		return fmt.Errorf("informer %s: %w", i.name, ErrStopped)
	}
}

func (i *SharedInformer[T]) waitForSync(ctx context.Context) error {
	select {
	case <-i.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("informer %s has no complete list yet: %w", i.name, context.Cause(ctx))
	case <-i.done:
		return fmt.Errorf("informer %s: %w", i.name, ErrStopped)
	}
}

// ListerAfter is Lister for callers that read their own writes: it waits as
// WaitForResourceVersion does.
func (i *SharedInformer[T]) ListerAfter(ctx context.Context, version string) (Lister[T], error) {
	return i.Lister(), i.WaitForResourceVersion(ctx, version)
}

// advanced wakes the waits whose resourceVersion the cache has reached. It is
// called whenever that may be so, and costs one load while there are no waits.
func (i *SharedInformer[T]) advanced() {
	if i.waits.count.Load() > 0 {
		i.waits.wake(i.fifo.Processed())
	}
}

// waits are the calls that wait for a resourceVersion.
type waits struct {
	count atomic.Int32 // of all; raised before the version is looked at
	mu    sync.Mutex
	all   []*wait
}

type wait struct {
	version string
	reached chan struct{} // closed when it is
	woken   bool
}

func (w *waits) enter(version string) *wait {
	w.count.Add(1)
	entered := &wait{version: version, reached: make(chan struct{})}
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

func (w *waits) wake(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if !one.woken && covers(version, one.version) {
			one.woken = true
			close(one.reached)
		}
	}
}

// covers reports whether a cache that has reached one resourceVersion has
// surely reached the wanted one.
func covers(reached, wanted string) bool {
	order, err := resourceversion.CompareResourceVersion(reached, wanted)
	return err == nil && order >= 0 || reached == wanted
}
