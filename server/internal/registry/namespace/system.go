package namespace

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// nodeLeaseNamespace holds the leases that nodes renew.
const nodeLeaseNamespace = "kube-node-lease"

var (
	// undeletable namespaces cannot be deleted.
	undeletable = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
	// system namespaces exist in every cluster.
	system = append(slices.Clip(undeletable), nodeLeaseNamespace)
)

// System returns the names of the namespaces that every cluster has.
func System() []string { return slices.Clone(system) }

// IsSystem reports whether a namespace is one that every cluster has.
func IsSystem(name string) bool { return slices.Contains(system, name) }

// Ensure creates a namespace unless it exists.
func Ensure(ctx context.Context, set *registry.Set, name string) error {
	namespaces, ok := set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	if err := namespaces.Ensure(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}
