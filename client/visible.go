package client

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/filteredlist"
)

// ErrNotFiltered means that a server has ignored [Resource.Visible]: only Levelwire's with
// the option --filtered-lists know it, and only for resources that have namespaces.
var ErrNotFiltered = errors.New("the server does not limit lists and watches to what the user may see: " +
	"it has to be a Levelwire server with --filtered-lists, and the resource must have namespaces; otherwise ask for single namespaces")

// Visible returns the same endpoint with lists, watches and differences of all namespaces
// that have what the user may list and watch, by roles and bindings, instead of everything or
// nothing. A watch goes on when rights change: what a grant makes visible is ADDED, with the
// resourceVersion that each object has, and a bookmark follows; what a withdrawal takes away is
// DELETED. Of an object that the server may not send any more, that event has the name,
// namespace and UID only. See docs/users/filtered-lists.md.
//
// A resourceVersion is valid for the same user with the same groups: a watch that the server
// answers for another one than the list before it fails as one that has expired (410), by
// the endpoint that Visible has returned and its copies. If the server does not know the
// option, each method returns an error that matches ErrNotFiltered. Other verbs, and
// endpoints that are limited to a namespace, are not affected.
func (r Resource[T]) Visible() Resource[T] {
	r.visible = new(visible)
	return r
}

// visible is what an endpoint of Visible knows. It is safe for concurrent use.
type visible struct{ user atomic.Pointer[string] }

// asksForVisible reports whether a verb is limited to what the user may see.
func (r Resource[T]) asksForVisible(verb string) bool {
	return r.visible != nil && r.namespace == "" && (verb == "list" || verb == "watch" || verb == "difference")
}

// confirmVisible checks that the server has obeyed. state says that the answer is or begins
// with a complete state; otherwise it must be for the same user as that.
func (r Resource[T]) confirmVisible(verb string, header http.Header, state bool) error {
	if !r.asksForVisible(verb) {
		return nil
	}
	user := header.Get(filteredlist.Header)
	if user == "" {
		return fmt.Errorf("%s %s: %w", verb, r.gvr.Resource, ErrNotFiltered)
	}
	if before := r.visible.user.Load(); before == nil || state {
		r.visible.user.Store(&user)
	} else if *before != user {
		return apierrors.NewResourceExpired("the resourceVersion is of a list for another user, or for one with other groups: list again")
	}
	return nil
}

// explainVisible says what a refusal means that a server with the option does not send.
func (r Resource[T]) explainVisible(verb string, err error) error {
	if r.asksForVisible(verb) && apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", ErrNotFiltered, err)
	}
	return err
}
