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

	"github.com/levelwire/levelwire/resource"
)

// nodeLeaseNamespace holds the leases that nodes renew.
const nodeLeaseNamespace = "kube-node-lease"

// systemNamespaces exist in every cluster and cannot be deleted.
var systemNamespaces = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, nodeLeaseNamespace,
}

// NamespaceLifecycle is the Admission that keeps objects out of namespaces
// that do not exist or are being deleted, and the system's namespaces from
// being deleted.
//
// What it knows about a namespace comes from the cache, which may be behind
// the store by an instant: an object can still be created in a namespace
// whose deletion was asked for just now. The namespace controller lists what is
// left after that, and finds it.
func NamespaceLifecycle(set *Set) Admission {
	return func(ctx context.Context, q *Request) error {
		switch {
		case q.Operation == Delete && isNamespaces(q.Resource):
			if slices.Contains(systemNamespaces, q.Name) {
				return apierrors.NewForbidden(q.Resource.GroupResource(), q.Name, errors.New("this namespace may not be deleted"))
			}
		case q.Operation == Create && q.Namespace != "":
			return set.requireNamespace(ctx, q)
		}
		return nil
	}
}

func isNamespaces(res *resource.Resource) bool {
	return res.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// requireNamespace asks the store if the cache does not know the namespace:
// it may have been created just now.
func (s *Set) requireNamespace(ctx context.Context, q *Request) error {
	namespaces, ok := s.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	cur, err := namespaces.read(ctx, "", q.Namespace, false)
	if err != nil {
		return err
	}
	if cur.object == nil {
		return namespaces.notFound(q.Namespace)
	}
	if !terminating(cur.object) {
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
