package admission

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// denyExternalIPs refuses external addresses that a service does not have yet: with them
// it can take over traffic to addresses of others (CVE-2020-8554).
func denyExternalIPs(_ context.Context, q *registry.Request) error {
	service, ok := q.Object.(*corev1.Service)
	if !ok || q.Operation != registry.Create && q.Operation != registry.Update || q.Subresource != "" {
		return nil
	}
	had := sets.New[string]()
	if old, ok := q.Old.(*corev1.Service); ok {
		had.Insert(old.Spec.ExternalIPs...)
	}
	for _, ip := range service.Spec.ExternalIPs {
		if !had.Has(ip) {
			return q.Forbidden(errors.New("Use of external IPs is denied by admission control")) //nolint:revive,staticcheck // the text of Kubernetes
		}
	}
	return nil
}
