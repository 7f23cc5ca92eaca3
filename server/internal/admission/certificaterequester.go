package admission

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// CertificateRequester returns the hook that writes the requesting user into a
// CertificateSigningRequest, whatever the client has put there: a signer relies
// on it. It also sets the times that the conditions of a decision lack.
func CertificateRequester(set *registry.Set) registry.Admission {
	return func(ctx context.Context, q *registry.Request) error { return setRequester(ctx, set, q) }
}

func setRequester(ctx context.Context, set *registry.Set, q *registry.Request) error {
	request, ok := q.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	switch {
	case q.Operation == registry.Create:
		user, known := auth.UserFrom(ctx)
		if !known {
			return nil // a part of this server, which has set the user itself
		}
		spec := &request.Spec
		spec.Username, spec.UID, spec.Groups, spec.Extra = user.Name, user.UID, append([]string(nil), user.Groups...), nil
		for key, values := range user.Extra {
			if spec.Extra == nil {
				spec.Extra = make(map[string]certificatesv1.ExtraValue, len(user.Extra))
			}
			spec.Extra[key] = append(certificatesv1.ExtraValue(nil), values...)
		}
	case q.Subresource == "approval" || q.Subresource == "status":
		for i := range request.Status.Conditions {
			c := &request.Status.Conditions[i]
			if c.LastUpdateTime.IsZero() {
				c.LastUpdateTime = set.Now()
			}
			if c.LastTransitionTime.IsZero() {
				c.LastTransitionTime = lastTransition(q.Old, c, set.Now())
			}
		}
	}
	return nil
}

// lastTransition returns since when a condition has its status.
func lastTransition(old resource.Object, c *certificatesv1.CertificateSigningRequestCondition, now metav1.Time) metav1.Time {
	request, ok := old.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return now
	}
	for i := range request.Status.Conditions {
		before := &request.Status.Conditions[i]
		if before.Type == c.Type && before.Status == c.Status && !before.LastTransitionTime.IsZero() {
			return before.LastTransitionTime
		}
	}
	return now
}
