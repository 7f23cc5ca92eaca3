package read

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Changes are changes of a scope that the log of its cache has, in their order.
type Changes struct {
	Items []watchcache.LoggedChange
	// More says that the log has more of them before the first.
	More bool
	// Oldest is the revision since which the log has every change, and Revision the one that
	// the cache has reached.
	Oldest, Revision storage.Revision
}

// Changes returns the latest changes, at most limit, of what the scope and the selectors of the
// options select, that were made after one revision and through another; 0 for the latter is
// no limit.
func (r *Reader) Changes(ctx context.Context, scope Scope, opts *metav1.ListOptions, after, through storage.Revision, limit int) (Changes, error) {
	sel, err := scope.parse(opts, func(*metav1.ListOptions) error { return nil })
	if err != nil {
		return Changes{}, err
	}
	selection, err := scope.selection(sel)
	if err != nil {
		return Changes{}, err
	}
	cache, err := r.filledCache(scope.Resource)
	if err != nil {
		return Changes{}, err
	}
	out := Changes{Revision: cache.Reached()}
	if through == 0 || through > out.Revision {
		through = out.Revision
	}
	out.Items, out.More, err = cache.Changes(ctx, selection, after, through, limit)
	out.Oldest = cache.ExactSince() // after the log was read: what was evicted meanwhile is not claimed
	return out, err
}

// RevisionAt returns the revision that a resource had at a moment: that of its latest change that
// had arrived. It fails with a 410 if the log does not reach back that far.
func (r *Reader) RevisionAt(scope Scope, moment time.Time) (storage.Revision, error) {
	cache, err := r.filledCache(scope.Resource)
	if err != nil {
		return 0, err
	}
	revision, ok := cache.RevisionAt(moment)
	if !ok {
		return 0, apierrors.NewResourceExpired("how the collection was at that moment is not kept any more")
	}
	return revision, nil
}
