package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/levelwire/levelwire/client/internal/pagetoken"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPageLimit is kubectl's and client-go's.
const defaultPageLimit = 500

// ErrPagesExpired is what the error of [Resource.Pages] and [Resource.All]
// matches when the server no longer has the resourceVersion of the first page.
// It matches apierrors.IsResourceExpired or apierrors.IsGone, too.
var ErrPagesExpired = errors.New("the list expired between two pages")

// Pages lists what opts selects, page by page, with opts.Limit objects each (500
// if that is 0). A page is requested when the loop asks for it, so breaking out of
// the loop ends it:
//
//	for page, err := range pods.Pages(ctx, metav1.ListOptions{Limit: 100}) {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// All pages are of one resourceVersion. A server keeps it for some minutes; if
// the loop is slower, the last error matches [ErrPagesExpired], and the caller
// begins again: the pages that it has do not make a complete list. A page of another
// resourceVersion is a [DecodeError]. opts.Continue begins with a later page. After an
// error there are no more pages.
func (r Resource[T]) Pages(ctx context.Context, opts metav1.ListOptions) iter.Seq2[*List[T], error] {
	return func(yield func(*List[T], error) bool) {
		opts := opts // the loop may run again
		if opts.Limit == 0 {
			opts.Limit = defaultPageLimit
		}
		objects, version := 0, ""
		var tokens pagetoken.Cycle
		for {
			page, err := r.List(ctx, opts)
			if err == nil && objects > 0 && page.ResourceVersion != version {
				err = &DecodeError{What: "list", Err: fmt.Errorf(
					"a page of resourceVersion %q follows %d objects of %q: list again from the beginning", page.ResourceVersion, objects, version)}
			}
			if err != nil {
				yield(nil, r.pageError(err, opts.Continue != "", objects))
				return
			}
			if !yield(page, nil) || page.Continue == "" {
				return
			}
			objects, version = objects+len(page.Items), page.ResourceVersion
			if page.Continue == opts.Continue || tokens.Closes(page.Continue) {
				yield(nil, r.refused("list", errors.New("the server's continue token does not advance")))
				return
			}
			// A continue token has the resourceVersion in it, and servers refuse both.
			opts.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = page.Continue, "", ""
		}
	}
}

// All lists what opts selects, object by object. The objects are read in pages,
// as by [Resource.Pages]; so it takes little memory, whatever there is.
func (r Resource[T]) All(ctx context.Context, opts metav1.ListOptions) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range r.Pages(ctx, opts) {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, obj := range page.Items {
				if !yield(obj, nil) {
					return
				}
			}
		}
	}
}

// pageError adds to the server's answer what was asked for, and says of a 410 between
// two pages what to do about it.
func (r Resource[T]) pageError(err error, continued bool, objects int) error {
	if continued && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
		err = fmt.Errorf("%w after %d objects: list again from the beginning, with a larger Limit or less work between the pages (%w)", ErrPagesExpired, objects, err)
	}
	if strings.HasPrefix(err.Error(), "list ") { // it did not reach the server, or its list was not understood
		return err
	}
	return r.refused("list", err)
}
