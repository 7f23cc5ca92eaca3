package csr

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// maxBeginSkew is how far from the server's time the certificate of a pod may begin.
const maxBeginSkew = 5 * time.Minute

// EndPodRequest returns the validating hook that refuses the status of a
// PodCertificateRequest by users who have no right to sign for its signer, and certificates
// that do not begin now. It is no plugin that can be disabled: kube-apiserver has it in its
// validation, so that a refusal is a 422.
func (p Plugin) EndPodRequest(now func() metav1.Time) registry.Admission {
	return func(ctx context.Context, q *registry.Request) error {
		request, ok := q.Object.(*certificatesv1.PodCertificateRequest)
		old, had := q.Old.(*certificatesv1.PodCertificateRequest)
		if !ok || !had || q.Operation != registry.Update || q.Subresource != "status" || equality.Semantic.DeepEqual(old.Status, request.Status) {
			return nil
		}
		var errs field.ErrorList
		signer := old.Spec.SignerName
		if begin := request.Status.NotBefore; begin != nil && begin.Sub(now().Time).Abs() >= maxBeginSkew {
			errs = append(errs, field.Invalid(field.NewPath("status", "notBefore"), begin.Time, "must be set to within 5 minutes of kube-apiserver's current time"))
		} else if !p.may(ctx, "sign", signer) {
			user, _ := auth.UserFrom(ctx) // without one, it may
			errs = append(errs, field.Forbidden(field.NewPath("spec", "signerName"), fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", user.Name, signer)))
		}
		if len(errs) == 0 {
			return nil
		}
		return apierrors.NewInvalid(certificatesv1.SchemeGroupVersion.WithKind("PodCertificateRequest").GroupKind(), q.Name, errs)
	}
}
