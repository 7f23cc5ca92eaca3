package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Lifecycle returns the hook that keeps objects out of namespaces
// that do not exist or are being deleted, and the system's namespaces from
// being deleted.
//
// A namespace may begin to be deleted, and even be gone, between the moment in
// which an object is admitted to it and that in which the object is written. So
// the hook looks at the namespace again after the write, and deletes the object
// if need be. It may use the cache for that: the namespace controller, which
// removes the namespace when it finds nothing in it, knows of the deletion from
// the cache's watch, so that it can overlook only objects that are written after
// the cache knows. An object can be left over only if several servers share the
// store, and the one that writes is behind the controller's by the whole deletion
// of a namespace.
func Lifecycle(set *registry.Set) registry.Admission {
	l := lifecycle{set}
	return func(ctx context.Context, q *registry.Request) error {
		switch {
		case q.Operation == registry.Delete && isNamespaces(q.Resource):
			if slices.Contains(undeletable, q.Name) {
				return apierrors.NewForbidden(q.Resource.GroupResource(), q.Name, errors.New("this namespace may not be deleted"))
			}
		case q.Operation == registry.Create && q.Namespace != "" && q.Subresource == "" && q.Resource.Stored().StorePrefix != "":
			// Tokens and evictions are no content of the namespace: pods that end in it need
			// both. Reviews, which are not stored, are none either.
			if err := l.require(ctx, q); err != nil {
				return err
			}
			if !q.DryRun && !q.Reinvoked {
				q.Finally(func(ctx context.Context, outcome registry.Outcome) { l.follow(ctx, q, outcome) })
			}
		}
		return nil
	}
}

// lifecycle looks at namespaces through the Set.
type lifecycle struct{ set *registry.Set }

func isNamespaces(res *resource.Resource) bool {
	return res.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// phase is what the hook has to know about a namespace.
type phase uint8

const (
	absent phase = iota
	active
	ending
)

// endingForm is kept with a cached namespace and says whether it is being deleted,
// so that a create does not have to decode it.
var endingForm = watchcache.NewForm("namespace is being deleted")

// phaseOf believes the cache that a namespace is active, if the cache has seen
// what this server has written to namespaces, and asks the store for everything
// else: the namespace may have been created just now, also in the place of one
// that the cache still has.
func (l lifecycle) phaseOf(ctx context.Context, namespaces registry.Registry, name string) (phase, error) {
	if cache := namespaces.Cache(); cache != nil {
		current := cache.Current()
		upToDate := current.Revision() >= namespaces.Changed()
		if cached, ok := current.Get(name); ok && upToDate { // empty until it is filled
			isEnding, err := cached.Form(endingForm, func(o *watchcache.Object) ([]byte, error) {
				return encodeEnding(ctx, namespaces, o)
			})
			if err == nil && len(isEnding) == 0 {
				return active, nil
			}
		}
	}
	obj, err := namespaces.GetFromStore(ctx, "", name)
	switch {
	case apierrors.IsNotFound(err):
		return absent, nil
	case err != nil:
		return absent, err
	case terminating(obj):
		return ending, nil
	}
	return active, nil
}

// encodeEnding makes the endingForm: not empty if the namespace is being deleted.
func encodeEnding(ctx context.Context, namespaces registry.Registry, o *watchcache.Object) ([]byte, error) {
	obj, err := registry.DecodeAs[resource.Object](ctx, namespaces, o)
	if err != nil || !terminating(obj) {
		return nil, err
	}
	return []byte{1}, nil
}

// follow deletes an object that has just been created if its namespace is being
// deleted or gone. The client sees what would have happened an instant later.
func (l lifecycle) follow(ctx context.Context, q *registry.Request, outcome registry.Outcome) {
	namespaces, ok := l.set.Lookup("", "v1", "namespaces")
	if !ok || outcome == registry.Refused {
		return
	}
	// If the store fails the object stays, as it does if the server dies here.
	if found, err := l.phaseOf(ctx, namespaces, q.Namespace); err != nil || found == active {
		return
	}
	uid := q.Object.GetUID()
	_, _ = l.set.For(q.Resource).DeleteAdmitted(ctx, q.Namespace, q.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}

// require refuses an object that cannot be created in its namespace.
func (l lifecycle) require(ctx context.Context, q *registry.Request) error {
	namespaces, ok := l.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	switch found, err := l.phaseOf(ctx, namespaces, q.Namespace); {
	case err != nil:
		return err
	case found == absent:
		return apierrors.NewNotFound(namespaces.Resource().GroupResource(), q.Namespace)
	case found == active:
		return nil
	}
	refused := apierrors.NewForbidden(q.Resource.GroupResource(), q.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", q.Namespace))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", q.Namespace),
		Field:   "metadata.namespace",
	})
	return refused
}

func terminating(obj resource.Object) bool {
	if obj.GetDeletionTimestamp() != nil {
		return true
	}
	ns, ok := obj.(*corev1.Namespace)
	return ok && ns.Status.Phase == corev1.NamespaceTerminating
}
