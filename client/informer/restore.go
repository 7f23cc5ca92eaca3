package informer

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/contain"
	"github.com/levelwire/levelwire/client/internal/diskcache"
)

// identityPatience is how long a restored state waits for the server's
// identity. After that it is served all the same, as stale.
const identityPatience = 2 * time.Second

// restore fills the cache from the file, and returns the resourceVersion to
// resume from; "": a list has to follow. It may wait for the server's identity
// until ctx ends, but then the cache is served already.
func (i *SharedInformer[T]) restore(ctx context.Context) string {
	if i.disk == nil {
		return ""
	}
	r := i.disk.open()
	if r == nil {
		return ""
	}
	defer func() {
		if err := r.Close(); err != nil {
			i.log.Warn("the cache file was read but not closed", "error", err)
		}
	}()
	cluster := r.Header().Cluster
	known, err := i.disk.identify(ctx, identityPatience)
	if known && !i.disk.accepts(cluster, err) {
		return ""
	}
	objects, err := i.disk.load(ctx, r)
	if err == nil {
		err = i.adopt(objects, r.Version(), r.Saved())
	}
	if err != nil {
		if ctx.Err() == nil {
			i.disk.refused(err)
		}
		i.disk.written = nil
		return ""
	}
	i.disk.count(func(s *DiskStats) { s.Restored, s.Saved = len(objects), r.Saved() })
	i.log.Info("restored from disk", "objects", len(objects), "resourceVersion", r.Version(), "age", time.Since(r.Saved()).Round(time.Second))
	if !known {
		known, err = i.disk.identify(ctx, 0)
	}
	if known && i.disk.accepts(cluster, err) {
		return r.Version()
	}
	i.disk.written = nil
	i.fifo.Reached("") // this cluster has not reached it
	return ""
}

// adopt puts objects into the cache and calls the handlers that were added
// before.
func (i *SharedInformer[T]) adopt(objects []T, version string, saved time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, obj := range objects {
		key, err := i.indexer.KeyOf(obj)
		if err != nil {
			return fmt.Errorf("an object without identity: %w", err)
		}
		i.mutations.stored(key, obj)
	}
	if err := i.indexer.Replace(objects); err != nil {
		i.unindexed.Add(1)
		i.log.Warn("restored objects are not in all indexes", "error", err)
	}
	if len(objects) > 0 {
		i.made.scope.restored(objects[0].GetNamespace() == "")
	}
	i.fifo.Reached(version)
	i.restoredAsOf = saved
	for _, l := range i.listeners {
		l.begin(i.indexer.List(), false)
	}
	return nil
}

func (i *SharedInformer[T]) isResuming() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.resuming
}

// confirm is called when a watch has resumed from the restored resourceVersion.
func (i *SharedInformer[T]) confirm() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.resuming && i.phase == running {
		i.resuming = false
		i.declareSyncedLocked()
	}
}

// replacing is called when a list is complete: the restored state then needs no
// confirmation.
func (i *SharedInformer[T]) replacing() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resuming = false
}

// identify asks the server which cluster it is, until it answers or refuses
// to; timeout bounds that, unless it is 0. It returns false if it is not
// known whether it would answer.
func (d *disk[T]) identify(ctx context.Context, timeout time.Duration) (known bool, err error) {
	if d.cluster != "" {
		return true, nil
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for delay := 250 * time.Millisecond; ; delay = min(2*delay, 30*time.Second) {
		var cluster string
		var err error
		if panicked := contain.Call("DiskOptions.Identify", func() { cluster, err = d.opts.Identify(ctx) }); panicked != nil {
			err = panicked
		}
		switch {
		case err == nil && cluster != "":
			d.cluster = cluster
			return true, nil
		case err == nil:
			return true, fmt.Errorf("the server's identity is empty")
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
			return true, err
		}
		d.log.Info("the server does not say yet which cluster it is", "error", err)
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, err
		}
	}
}

// accepts compares the cluster that a file names with the server's. err is why
// the server's is not known.
func (d *disk[T]) accepts(named string, err error) bool {
	switch {
	case err != nil:
		d.refused(&diskcache.RefusedError{Path: d.path, Reason: diskcache.Foreign,
			Detail: fmt.Sprintf("the server does not say which cluster it is (set DiskOptions.Identify): %v", err)})
	case named != d.cluster:
		d.refused(&diskcache.RefusedError{Path: d.path, Reason: diskcache.Foreign,
			Detail: fmt.Sprintf("it is about cluster %s, the server's is %s", named, d.cluster)})
	default:
		return true
	}
	return false
}

// clusterOf returns a function that asks once, successfully, for all
// informers of a factory.
func clusterOf(c *client.Client) func(context.Context) (string, error) {
	turn := make(chan struct{}, 1) // guards cluster
	cluster := ""
	return func(ctx context.Context) (string, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if cluster != "" {
			return cluster, nil
		}
		namespaces := client.Metadata(c, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		namespace, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("the UID of namespace %s: %w", metav1.NamespaceSystem, err)
		}
		cluster = string(namespace.UID)
		return cluster, nil
	}
}
