package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// namespaceExistence is the plugins NamespaceExists, which refuses requests in namespaces
// that do not exist, and NamespaceAutoProvision, which creates such a namespace.
type namespaceExistence struct{ set *registry.Set }

func (n namespaceExistence) require(ctx context.Context, q *registry.Request) error {
	if q.Namespace == "" || q.Operation == registry.Remove {
		return nil
	}
	namespaces, ok := n.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	_, err := namespaces.Get(ctx, "", q.Namespace)
	return err
}

func (n namespaceExistence) provide(ctx context.Context, q *registry.Request) error {
	if q.Namespace == "" || q.Operation != registry.Create || q.DryRun {
		return nil
	}
	namespaces, ok := n.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	if _, err := namespaces.Get(ctx, "", q.Namespace); !apierrors.IsNotFound(err) {
		return err
	}
	return namespaces.Ensure(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.Namespace}})
}
