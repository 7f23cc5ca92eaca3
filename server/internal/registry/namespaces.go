package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// nodeLeaseNamespace holds the leases that nodes renew.
const nodeLeaseNamespace = "kube-node-lease"

var (
	// immortalNamespaces cannot be deleted.
	immortalNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
	// systemNamespaces exist in every cluster.
	systemNamespaces = append(slices.Clip(immortalNamespaces), nodeLeaseNamespace)
)

// NamespaceLifecycle is the Admission that keeps objects out of namespaces
// that do not exist or are being deleted, and the system's namespaces from
// being deleted.
//
// A namespace may begin to be deleted, and even end, between the moment that an
// object is admitted to it and that in which the object is written. So it is
// looked at again then, and the object deleted with its namespace if need be.
// The cache is enough for that: the namespace controller, which ends the
// namespace when it finds nothing in it, knows of the deletion from the cache's
// watch, so that what it can overlook is written after the cache knows. Only
// with several servers, of which the writing one is behind the controller's by
// the whole deletion of a namespace, can an object be left.
func NamespaceLifecycle(set *Set) Admission {
	return func(ctx context.Context, q *Request) error {
		switch {
		case q.Operation == Delete && isNamespaces(q.Resource):
			if slices.Contains(immortalNamespaces, q.Name) {
				return apierrors.NewForbidden(q.Resource.GroupResource(), q.Name, errors.New("this namespace may not be deleted"))
			}
		case q.Operation == Create && q.Namespace != "":
			if err := set.requireNamespace(ctx, q); err != nil {
				return err
			}
			if !q.DryRun {
				q.Finally(func(ctx context.Context, outcome Outcome) { set.followNamespace(ctx, q, outcome) })
			}
		}
		return nil
	}
}

func isNamespaces(res *resource.Resource) bool {
	return res.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// phase is what there is to know about a namespace here.
type phase uint8

const (
	absent phase = iota
	active
	ending
)

// endingForm keeps with a cached namespace whether it is being deleted, so that
// a create need not decode it.
var endingForm = watchcache.NewForm("namespace is being deleted")

// noteNamespaceWrite notes a change of a namespace, so that no cache is believed that has not
// seen it.
func (r Registry) noteNamespaceWrite(revision storage.Revision) {
	if !isNamespaces(r.stored) {
		return
	}
	written := &r.set.namespaceWritten
	for known := written.Load(); known < int64(revision) && !written.CompareAndSwap(known, int64(revision)); {
		known = written.Load()
	}
}

// phaseOf takes it from the cache that a namespace is active, if the cache has
// seen what was done to namespaces here, and asks the store for everything else:
// the namespace may have been created just now, also in the place of one that the
// cache still shows.
func (s *Set) phaseOf(ctx context.Context, namespaces Registry, name string) (phase, error) {
	if cache := s.config.Cache(namespaces.stored); cache != nil {
		current := cache.Current()
		upToDate := int64(current.Revision()) >= s.namespaceWritten.Load()
		if cached, ok := current.Get(name); ok && upToDate { // empty until it is filled
			isEnding, err := cached.Form(endingForm, func(o *watchcache.Object) ([]byte, error) { return namespaces.encodeEnding(ctx, o) })
			if err == nil && len(isEnding) == 0 {
				return active, nil
			}
		}
	}
	cur, err := namespaces.read(ctx, "", name, true)
	switch {
	case err != nil || cur.object == nil:
		return absent, err
	case terminating(cur.object):
		return ending, nil
	}
	return active, nil
}

// encodeEnding makes the endingForm: not empty if the namespace is being deleted.
func (r Registry) encodeEnding(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	st, err := r.decode(ctx, o.JSON, o.Revision, false)
	if err != nil || !terminating(st.object) {
		return nil, err
	}
	return []byte{1}, nil
}

// followNamespace deletes what has just been created if its namespace is going
// or gone. Whoever created it sees what would have happened an instant later.
func (s *Set) followNamespace(ctx context.Context, q *Request, outcome Outcome) {
	namespaces, ok := s.Lookup("", "v1", "namespaces")
	if !ok || outcome == Refused {
		return
	}
	// Where the store fails, the object stays: as it does if the server dies here.
	if found, err := s.phaseOf(ctx, namespaces, q.Namespace); err != nil || found == active {
		return
	}
	uid := q.Object.GetUID()
	_, _ = s.For(q.Resource).Delete(ctx, q.Namespace, q.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}

// requireNamespace refuses what cannot be created in its namespace.
func (s *Set) requireNamespace(ctx context.Context, q *Request) error {
	namespaces, ok := s.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	switch found, err := s.phaseOf(ctx, namespaces, q.Namespace); {
	case err != nil:
		return err
	case found == absent:
		return namespaces.notFound(q.Namespace)
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
