// Package wait waits for the state of one object, as kubectl wait does: by a watch,
// without polling.
//
// It is for programs that do one thing after another, and for tests. A controller
// does not wait: it is called again when the object changes.
package wait

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/scheme"
)

// The delays after a watch that was cut.
const (
	minDelay = 10 * time.Millisecond
	maxDelay = 5 * time.Second
)

// Until waits until an object exists and condition returns true for it, and
// returns the object. Condition is called with each state that the server shows,
// in order, by one goroutine. States between two watches may be left out.
//
// An object in a namespace needs the endpoint of that namespace, as with Get:
// several namespaces may have objects of the name. Without one there is an error, at
// once if the scope of the resource is known, and with the first object if not.
//
// The error of the first request is returned. When the connection is cut later,
// or the server fails, Until asks again after a jittered, growing delay, until ctx
// ends; the error then holds the last one of the server, and says how the object was last
// seen. Answers that another request would get, too, are returned at once: 400, 401, 403,
// 404 and 405.
func Until[T client.Object](ctx context.Context, r client.Resource[T], name string, condition func(obj T) bool) (T, error) {
	var found T
	if condition == nil {
		return found, errors.New("wait: the condition is nil")
	}
	err := follow(ctx, r, name, func(obj T, exists bool) bool {
		if !exists || !condition(obj) {
			return false
		}
		found = obj
		return true
	})
	return found, err
}

// UntilDeleted waits until an object does not exist. With a uid that is not empty,
// another object of the name counts as well: the one with that uid is gone. Errors
// are those of [Until].
func UntilDeleted[T client.Object](ctx context.Context, r client.Resource[T], name string, uid types.UID) error {
	return follow(ctx, r, name, func(obj T, exists bool) bool {
		return !exists || uid != "" && obj.GetUID() != uid
	})
}

// follow calls done with each state of an object until it returns true.
func follow[T client.Object](ctx context.Context, r client.Resource[T], name string, done func(obj T, exists bool) bool) error {
	if name == "" {
		return errors.New("wait: the object's name is empty")
	}
	f := follower[T]{resource: r, name: name, selector: fields.OneTermEqualSelector("metadata.name", name).String(), done: done}
	var err error
	if f.everywhere, err = isEverywhere(r); err != nil {
		return fmt.Errorf("wait for %s %q: %w", r.GroupVersionResource().Resource, name, err)
	}
	if mapping, _ := r.Mapping(); f.everywhere && mapping.Scope == scheme.Namespaced {
		return fmt.Errorf("wait for %s %q: %w", r.GroupVersionResource().Resource, name, errNoNamespace)
	}
	for delay := minDelay; ; delay = min(2*delay, maxDelay) {
		ended, err := f.once(ctx)
		switch {
		case ended:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("wait for %s %q%s: %w", r.GroupVersionResource().Resource, name, f.seen, errors.Join(context.Cause(ctx), f.last))
		case err != nil && (!f.begun || isFinal(err)):
			return fmt.Errorf("wait for %s %q: %w", r.GroupVersionResource().Resource, name, err)
		case err != nil:
			f.last = err
		}
		if f.progress {
			f.progress, delay = false, minDelay
		}
		select {
		case <-time.After(delay/2 + rand.N(delay/2)):
		case <-ctx.Done():
		}
	}
}

// errNoNamespace is the error of a wait for an object of some namespace or other.
var errNoNamespace = errors.New("no namespace is given, and the resource is namespaced: call Namespace")

// isEverywhere reports whether the endpoint is that of all namespaces, or of a
// resource that is not in namespaces.
func isEverywhere[T client.Object](r client.Resource[T]) (bool, error) {
	if r.Err() != nil || r.Client() == nil {
		return false, nil // the first request says why
	}
	own, err := r.URL("")
	if err != nil {
		return false, err
	}
	everywhere, err := r.Namespace("").URL("")
	return err == nil && own.Path == everywhere.Path, err
}

// isFinal reports whether asking again cannot help.
func isFinal(err error) bool {
	return errors.Is(err, errNoNamespace) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}

// follower is the state of a wait.
type follower[T client.Object] struct {
	resource client.Resource[T]
	name     string
	selector string
	done     func(obj T, exists bool) bool
	// everywhere: the endpoint has no namespace, so no object may have one.
	everywhere bool
	begun      bool   // the server has answered once
	progress   bool   // events came since the last delay
	last       error  // of the server
	seen       string // how the object was last seen, for an error
}

// show calls done with a state of the object.
func (f *follower[T]) show(obj T, exists bool) bool {
	f.seen = describe(obj, exists)
	return f.done(obj, exists)
}

// describe says what of an object tells a reader why a wait has not ended.
func describe(obj client.Object, exists bool) string {
	switch {
	case !exists:
		return ", which does not exist"
	case obj.GetDeletionTimestamp() == nil:
		return ", which is at resourceVersion " + obj.GetResourceVersion()
	case len(obj.GetFinalizers()) == 0:
		return ", which is being deleted"
	default:
		return fmt.Sprintf(", which is being deleted and has finalizers %q", obj.GetFinalizers())
	}
}

// once reads the object and watches it until the watch ends. It returns true if
// done has.
func (f *follower[T]) once(ctx context.Context) (bool, error) {
	list, err := f.resource.List(ctx, metav1.ListOptions{FieldSelector: f.selector})
	if err != nil {
		return false, err
	}
	f.begun = true
	var object T
	exists := false
	for _, item := range list.Items {
		own, err := f.isOwn("list", item)
		if err != nil {
			return false, err
		}
		if own {
			object, exists = item, true
		}
	}
	if f.show(object, exists) {
		return true, nil
	}
	w, err := f.resource.Watch(ctx, metav1.ListOptions{FieldSelector: f.selector, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return false, err
	}
	for event, err := range w.Events() {
		if err != nil {
			return false, err
		}
		f.progress = true
		if event.Type == watch.Bookmark {
			continue
		}
		own, err := f.isOwn("event", event.Object)
		if err != nil {
			return false, err
		}
		if own && f.show(event.Object, event.Type != watch.Deleted) {
			return true, nil
		}
	}
	return false, nil
}

// isOwn reports whether an object is the one that is waited for: there are servers that do not select by name. One
// without a name may be any, so that the answer says nothing, not even of a deletion.
func (f *follower[T]) isOwn(what string, obj T) (bool, error) {
	switch name := obj.GetName(); {
	case name == "":
		return false, &client.DecodeError{What: what, Err: errors.New("the object has no name")}
	case name != f.name:
		return false, nil
	case f.everywhere && obj.GetNamespace() != "":
		return false, errNoNamespace
	}
	return true, nil
}
