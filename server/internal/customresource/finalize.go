package customresource

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// startFinalizing starts a goroutine that deletes the objects of a definition that
// is being deleted, and then removes its finalizer. Every server does so; an
// object that another one has deleted is not found. ctx is the loop's.
func (l *Lifecycle) startFinalizing(ctx context.Context, name string, e *entry) {
	if !slices.Contains(e.crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	f := &finalizing{opts: &l.opts, name: name, uid: e.crd.UID}
	if e.installed != nil {
		f.stored = e.installed.stored
		l.setTerminating(f.stored, true)
	}
	ctx, cancel := context.WithCancel(ctx)
	e.finalize = cancel
	l.group.Go(func() error {
		defer cancel()
		f.run(ctx)
		return nil
	})
}

// finalizing deletes the objects of one definition.
type finalizing struct {
	opts   *Options
	name   string
	uid    types.UID
	stored *resource.Resource // nil if the definition never was served
}

// run makes attempts until one succeeds or ctx ends.
func (f *finalizing) run(ctx context.Context) {
	delay := retryFirst
	for {
		err := f.attempt(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		f.opts.Logger.Warn("the objects of a CustomResourceDefinition cannot be deleted: trying again", "name", f.name, "error", err, "delay", delay)
		if wait(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, retryLast)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *finalizing) attempt(ctx context.Context) error {
	if f.stored == nil {
		return f.release(ctx, "NeverEstablished", "resource was never established")
	}
	if err := f.setTerminating(ctx, "InstanceDeletionInProgress", "CustomResource deletion is in progress"); err != nil {
		return err
	}
	if err := f.deleteAll(ctx); err != nil {
		return err
	}
	return f.release(ctx, "InstanceDeletionCompleted", "removed all instances")
}

// deleteAll deletes every object and waits until all are gone: objects with
// finalizers go when the owners of the finalizers have removed them.
func (f *finalizing) deleteAll(ctx context.Context) error {
	cache := f.opts.Caches.Of(f.stored)
	if cache == nil {
		return nil // another server has finished before
	}
	if err := cache.WaitReady(ctx); err != nil {
		return err
	}
	watcher, err := cache.Watch(watchcache.WatchOptions{After: cache.Current().Revision()})
	if err != nil {
		return err
	}
	defer watcher.Close()
	asked := map[types.UID]bool{}
	for {
		now, err := f.opts.Store.Current(ctx)
		if err != nil {
			return err
		}
		left, err := f.deleteRest(ctx, cache, now, asked)
		if err != nil || left == 0 {
			return err
		}
		if err := drain(ctx, watcher); err != nil {
			return err
		}
	}
}

// deletesAtOnce bounds how many objects are deleted at the same time.
const deletesAtOnce = 16

// deleteRest deletes the objects that are not in asked yet, and returns how many
// objects exist.
func (f *finalizing) deleteRest(ctx context.Context, cache *watchcache.Cache, now storage.Revision, asked map[types.UID]bool) (int, error) {
	snapshot, err := cache.NotOlderThan(ctx, now)
	if err != nil {
		return 0, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	objects := f.opts.Registry.For(f.stored)
	for o := range snapshot.Range("", "") {
		uid := types.UID(o.Attributes.UID)
		if asked[uid] {
			continue
		}
		asked[uid] = true
		group.Go(func() error {
			_, err := objects.Delete(groupCtx, o.Attributes.Namespace, o.Attributes.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return nil
			}
			return fmt.Errorf("delete %s: %w", o.Key, err)
		})
	}
	return snapshot.Len(), group.Wait()
}

// drain waits for a change, and reads all that the watch has.
func drain(ctx context.Context, watcher *watchcache.Watcher) error {
	var events [64]watchcache.Event
	for any := false; ; {
		n, err := watcher.Read(events[:])
		if err != nil {
			return err
		}
		if n > 0 {
			any = true
			continue
		}
		if any {
			return nil
		}
		select {
		case <-watcher.Ready():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// setTerminating sets the condition Terminating.
func (f *finalizing) setTerminating(ctx context.Context, reason, message string) error {
	return f.updateStatus(ctx, func(crd *apiextensionsv1.CustomResourceDefinition) {
		f.terminating(crd, apiextensionsv1.ConditionTrue, reason, message)
	})
}

// release sets the condition Terminating to False and removes the finalizer, in one update of the
// status, as kube-apiserver does: an update of the definition is refused if a client has written a
// status that does not fit its versions, and the definition would stay for ever.
func (f *finalizing) release(ctx context.Context, reason, message string) error {
	return f.updateStatus(ctx, func(crd *apiextensionsv1.CustomResourceDefinition) {
		f.terminating(crd, apiextensionsv1.ConditionFalse, reason, message)
		apihelpers.CRDRemoveFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
	})
}

func (f *finalizing) terminating(crd *apiextensionsv1.CustomResourceDefinition, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(f.opts.Now()),
	})
}

// updateStatus changes the definition's status. A definition that does not exist any more is no
// error.
func (f *finalizing) updateStatus(ctx context.Context, change func(*apiextensionsv1.CustomResourceDefinition)) error {
	_, err := f.opts.Registry.For(f.opts.Definitions).UpdateStatus(withoutWaiting(ctx), "", f.name, func(current resource.Object) (resource.Object, error) {
		crd := current.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
		if crd.UID != f.uid {
			return nil, apierrors.NewNotFound(f.opts.Definitions.GroupResource(), f.name)
		}
		change(crd)
		return crd, nil
	}, registry.UpdateOptions{Unconditional: true, WriteOptions: registry.WriteOptions{FieldManager: fieldManager}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
