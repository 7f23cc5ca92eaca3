package registry

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// RequestedBy is the [Admission] that writes into a CertificateSigningRequest
// who asks for the certificate, whatever the client says about that: a signer
// relies on it. Requests that were decided get the times that the decision
// lacks.
func (s *Set) RequestedBy(ctx context.Context, q *Request) error {
	request, ok := q.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	switch {
	case q.Operation == Create:
		user, known := auth.UserFrom(ctx)
		if !known {
			return nil // a program in this process, which says itself for whom
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
				c.LastUpdateTime = s.Now()
			}
			if c.LastTransitionTime.IsZero() {
				c.LastTransitionTime = s.Now()
			}
		}
	}
	return nil
}
