package registry

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// DeletedCollection are the objects that DeleteCollection has deleted, as they were
// listed before, in key order.
type DeletedCollection struct {
	Objects  []*watchcache.Object
	Revision storage.Revision
}

// DeleteCollection deletes the objects that selection matches (nil: all) of one
// namespace ("" for a cluster-scoped kind). An object that another
// client has deleted first counts as deleted. After the first error no further
// deletion begins; objects that are deleted by then stay so. selection must be one
// of the stored resource. The deletions wait for the cache again and again, so that
// they do not run far ahead of it: consistent reads of every resource would wait
// until it has caught up.
func (r Registry) DeleteCollection(ctx context.Context, namespace string, selection *watchcache.Selection, opts *metav1.DeleteOptions) (*DeletedCollection, error) {
	var listed *DeletedCollection
	err := r.DeleteListed(ctx, opts, func() ([]*watchcache.Object, error) {
		var err error
		if listed, err = r.listForDeletion(ctx, namespace, selection); err != nil {
			return nil, err
		}
		return listed.Objects, nil
	})
	if err != nil {
		return nil, err
	}
	return listed, nil
}

// DeleteListed deletes the objects that list returns, as DeleteCollection does. list is called once
// the options are known to be right. It may return objects of an older version: one that was made
// under the name of a listed one since then stays.
func (r Registry) DeleteListed(ctx context.Context, opts *metav1.DeleteOptions, list func() ([]*watchcache.Object, error)) error {
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if err := checkCollectionOptions(opts); err != nil {
		return err
	}
	r.warnOfOrphans(ctx, opts)
	objects, err := list()
	if err != nil {
		return err
	}
	return r.deleteEach(ctx, objects, opts)
}

func (r Registry) deleteEach(ctx context.Context, objects []*watchcache.Object, opts *metav1.DeleteOptions) error {
	workers, workCtx := errgroup.WithContext(ctx)
	workers.SetLimit(r.set.config.DeleteWorkers)
	for i, obj := range objects {
		if workCtx.Err() != nil {
			break
		}
		if cache := r.set.config.Cache(r.stored); cache != nil && i%deletionsAhead == deletionsAhead-1 {
			// A cache that stays behind delays the deletions and does not stop them.
			_, _ = cache.Latest(workCtx, r.set.config.Store)
		}
		workers.Go(func() error {
			d := &deletion{opts: opts.DeepCopy(), listed: types.UID(obj.Attributes.UID)}
			_, err := r.delete(workCtx, obj.Attributes.Namespace, obj.Attributes.Name, d, false)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return r.StoreError("", err)
	}
	return nil
}

// checkCollectionOptions refuses options before an object is deleted with them, and if there is none.
func checkCollectionOptions(opts *metav1.DeleteOptions) error {
	errs := validation.ValidateDeleteOptions(opts)
	if len(errs) == 0 && ignoresReadError(opts) {
		errs = append(errs, field.Invalid(field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option"))
	}
	if len(errs) > 0 {
		return invalidDeleteOptions(errs)
	}
	return nil
}

// deletionsAhead is how many deletions of a collection begin before the cache must
// have caught up.
const deletionsAhead = 64

// listForDeletion is the decision of the write: the objects that there are at the
// store's current revision. Unlike a list, it waits for a cache that is being filled.
func (r Registry) listForDeletion(ctx context.Context, namespace string, selection *watchcache.Selection) (*DeletedCollection, error) {
	cache := r.set.config.Cache(r.stored)
	if cache == nil {
		return nil, apierrors.NewServiceUnavailable("the cache of " + r.res.GroupResource().String() + " is not there yet: try again")
	}
	if err := cache.WaitReady(ctx); err != nil {
		return nil, r.StoreError("", err)
	}
	snapshot, err := cache.Latest(ctx, r.set.config.Store)
	if err != nil {
		return nil, r.cacheError(err)
	}
	prefix := ""
	if r.stored.Namespaced && namespace != "" {
		prefix = namespace + "/"
	}
	listed := &DeletedCollection{Revision: snapshot.Revision()}
	for obj := range snapshot.Range(prefix, "") {
		if selection.Matches(obj) {
			listed.Objects = append(listed.Objects, obj)
		}
	}
	return listed, nil
}

// cacheError is a cache that did not reach the store's revision in time.
func (r Registry) cacheError(err error) error {
	var behind *watchcache.TooLargeError
	if errors.As(err, &behind) {
		return apierrors.NewTimeoutError(behind.Error(), 1)
	}
	return r.StoreError("", err)
}
