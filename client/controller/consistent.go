package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Consistent returns nil if everything that this call of a ReconcileFunc has read, from every
// informer of its controller, is at least as new as
//
//   - what any of these informers showed when the key first asked after it was last added, and
//     so what has caused the call,
//   - the controller's own writes, as far as Wrote knows them,
//   - the given objects: an owner that is marked for deletion, for instance,
//   - and, where a leader is elected, the writes of the leaders before: see
//     TypedController.RequireResourceVersion.
//
// Each informer has a watch of its own, and any of them may be behind the others: a
// ReconcileFunc that has an owner from one and misses its dependents in the other has no reason
// to create them. It asks before it acts on what is not there:
//
//	if len(pods) != wanted {
//		if err := controller.Consistent(ctx, set); err != nil {
//			return controller.Result{}, err
//		}
//		...
//	}
//
// The error has to be returned: the key is reconciled again once the informers are there. No
// worker waits for that. It is no failure, and the key's back-off stays as it is. Changes that come
// meanwhile do not make the key wait longer, unless they add it, or an object's generation is
// another one, or it was marked for deletion. A key that is added again and again is bounded: once
// informers have caught up three times since it first asked, what adds it counts no more
// until it has passed.
//
// Informers of resources in which nothing changes ask the server how far they are
// (SharedInformer.CatchUp). A Levelwire server answers within milliseconds, kube-apiserver after
// one to two seconds. While a resource cannot be watched at all, the keys wait, and Stats
// counts them.
//
// Versions of different servers cannot be compared. Between an informer whose versions are
// higher than the most recent one of another's server, as those of an aggregated API server
// may be, and that other one, Consistent promises nothing. It promises nothing of an informer
// without a version, either: that of a server that gives lists none, or of a resource that is gone.
//
// With a context that is not from a call of a ReconcileFunc it returns nil.
func Consistent(ctx context.Context, objs ...metav1.Object) error {
	call, ok := ctx.Value(consistencyKey{}).(consistency)
	if !ok {
		return nil
	}
	return call.check("", objs)
}

// Wrote notes the answer to a write of a call of a ReconcileFunc: Consistent includes it from then
// on, in this call and in those that begin later. An answer to a deletion has the version of the object before it, and adds
// nothing.
func Wrote(ctx context.Context, obj metav1.Object) {
	if call, ok := ctx.Value(consistencyKey{}).(consistency); ok {
		call.wrote(obj.GetResourceVersion())
	}
}

type consistencyKey struct{}

// consistency is what the context of a call has of it.
type consistency interface {
	check(version string, objs []metav1.Object) error
	wrote(version string)
}

// consistentCall is a call of the ReconcileFunc.
type consistentCall[K comparable] struct {
	controller *TypedController[K]
	key        K
	began      shown     // what informers showed when the call began: it has read nothing older
	required   *required // of this call, or of the one that was put off
}

// behindError puts a key off until informers have caught up.
type behindError struct {
	wait     any // a *catchUp of the controller's type of keys
	required *required
}

// Error implements error.
func (behindError) Error() string {
	return "informers are behind: a ReconcileFunc returns the error of controller.Consistent, and is called again"
}

// wrote implements consistency.
func (l *consistentCall[K]) wrote(version string) {
	c := l.controller
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written, l.required.own = newest(c.written, version), newest(l.required.own, version)
}

// check implements consistency.
func (l *consistentCall[K]) check(version string, objs []metav1.Object) error {
	wait := l.controller.behind(l, version, objs)
	if wait == nil {
		return nil
	}
	return behindError{wait, l.required}
}

// newest returns the newer of two resourceVersions. One that is no number is older than any.
func newest(a, b string) string {
	switch {
	case reaches(a, b):
		return a
	case reaches(b, b):
		return b
	default:
		return a
	}
}

// reaches reports whether a cache that shows one resourceVersion shows the wanted one.
func reaches(shown, wanted string) bool {
	order, err := resourceversion.CompareResourceVersion(shown, wanted)
	return err == nil && order >= 0
}
