package csr

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// Attest refuses bundles of a signer for which the user has no right to attest: whoever
// reads the bundle trusts that it is the signer's.
func (p Plugin) Attest(ctx context.Context, q *registry.Request) error {
	bundle, ok := q.Object.(*certificatesv1.ClusterTrustBundle)
	if !ok || q.Operation != registry.Create && q.Operation != registry.Update || bundle.Spec.SignerName == "" {
		return nil
	}
	if old, ok := q.Old.(*certificatesv1.ClusterTrustBundle); ok && saysTheSame(bundle, old) {
		return nil
	}
	if !p.may(ctx, "attest", bundle.Spec.SignerName) {
		return q.Forbidden(fmt.Errorf("user not permitted to attest for signerName %q", bundle.Spec.SignerName))
	}
	return nil
}

// saysTheSame reports whether two bundles differ in nothing but what the garbage collector
// writes: owners and finalizers.
func saysTheSame(bundle, old *certificatesv1.ClusterTrustBundle) bool {
	same := bundle.DeepCopy()
	same.OwnerReferences, same.Finalizers, same.ManagedFields = old.OwnerReferences, old.Finalizers, old.ManagedFields
	same.ResourceVersion = old.ResourceVersion // which a client need not send
	return equality.Semantic.DeepEqual(same, old)
}
