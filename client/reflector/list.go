package reflector

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// listPages lists everything and replaces the store's content with it.
func (r *Reflector[T]) listPages(ctx context.Context) error {
	r.asked = time.Now()
	items, version, err := r.pages(ctx, max(r.opts.PageSize, 0))
	if err != nil {
		r.fresh = r.fresh || expired(err) || tooLarge(err)
		r.versionless = 0
		return err
	}
	if version == "0" && (len(items) > 0 || !unset(r.LastSyncResourceVersion()) || r.opts.PollTimeout > 0) {
		version = "" // a watch from "0" shows no deletions that were missed, and no poll can begin there
	}
	if version == "" && !r.believeUnversioned() {
		return errNoVersion
	}
	if older(version, r.LastSyncResourceVersion()) {
		// Only the most recent state may be older than what has been seen: then
		// the server itself went back. Anything else is a replica that lags.
		if !r.fresh {
			r.fresh = true
			r.counts.stale()
			return errOlder
		}
		r.cause = ListRewound
	}
	r.counts.paged()
	return r.replace(items, version)
}

// pages reads all pages of one list, and returns the resourceVersion of the
// first, which all have in common. When the server drops its snapshot between
// two pages, or a later page cannot be one of this list, the reflector asks for
// everything at once: what a page lacks would be taken for deleted.
func (r *Reflector[T]) pages(ctx context.Context, limit int64) ([]T, string, error) {
	opts := r.firstPage(limit)
	read := pagedList[T]{most: r.opts.MaxObjects, least: int(max(r.opts.PageSize, 0)) / 10}
	var version string
	for {
		list, err := r.page(ctx, opts)
		if err == nil && opts.Continue != "" {
			err = checkLaterPage(list, version, r.mayEndEmpty(limit))
		}
		if err == nil {
			err = read.add(list, opts.Continue == "")
		}
		if err != nil {
			var decode *client.DecodeError
			switch {
			case opts.Continue != "" && limit > 0 && expired(err):
				r.fresh = true
			case opts.Continue != "" && limit > 0 && errors.As(err, &decode):
				r.counts.decodeError()
				r.opts.Logger.Warn("asking for everything at once in place of pages", "error", err, "resourceVersion", version)
			default:
				return nil, "", err
			}
			return r.pages(ctx, 0)
		}
		if opts.Continue == "" {
			version = list.ResourceVersion
		}
		if list.Continue == "" {
			r.endsEmpty = r.endsEmpty || opts.Continue != "" && len(list.Items) == 0
			return read.items(), version, nil
		}
		opts = metav1.ListOptions{Limit: limit, Continue: list.Continue}
	}
}

// firstPage asks for any state at first (which the server has at hand, and for
// which it ignores the limit), for one that is not older than what has been
// seen later, and for the most recent when neither will do.
func (r *Reflector[T]) firstPage(limit int64) metav1.ListOptions {
	opts := metav1.ListOptions{Limit: limit}
	version := r.LastSyncResourceVersion()
	switch {
	case r.fresh:
	case version == "":
		opts.ResourceVersion = "0"
	default:
		// Without a match a resourceVersion with a limit means exactly that one.
		opts.ResourceVersion, opts.ResourceVersionMatch = version, metav1.ResourceVersionMatchNotOlderThan
	}
	return opts
}

// page reads one page.
func (r *Reflector[T]) page(ctx context.Context, opts metav1.ListOptions) (*client.List[T], error) {
	ctx, release := r.limited(ctx)
	defer release()
	list, err := r.source.List(ctx, opts)
	if err != nil {
		return nil, because(ctx, err)
	}
	if err := checkNames("list", list.Items); err != nil {
		return nil, err
	}
	r.counts.page()
	return list, nil
}

// expired reports whether the server no longer has the resourceVersion, or the
// snapshot.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// tooLarge reports whether the server has not reached the resourceVersion, and
// did not in the time that it waits.
func tooLarge(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
