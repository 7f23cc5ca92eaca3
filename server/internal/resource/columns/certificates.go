package columns

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func certificatesGroup(all layouts) {
	gv := certificatesv1.SchemeGroupVersion
	all.add(gv, "CertificateSigningRequest", certificateSigningRequests())
	all.add(gv, "ClusterTrustBundle", clusterTrustBundles())
}

func certificateSigningRequests() layout {
	return table(func(r *certificatesv1.CertificateSigningRequest, now time.Time) []any {
		lifetime := none
		if r.Spec.ExpirationSeconds != nil {
			lifetime = duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
		}
		return []any{
			r.Name, since(r.CreationTimestamp, now), or(r.Spec.SignerName, none), r.Spec.Username, lifetime,
			requestStatus(r),
		}
	},
		nameColumn,
		ageColumn,
		text("SignerName", "Who is asked to sign."),
		text("Requestor", "Who asks."),
		text("RequestedDuration", "How long the certificate should be valid."),
		text("Condition", "Whether the request is approved, and the certificate issued."),
	)
}

// requestStatus: a denial stands even beside an approval.
func requestStatus(r *certificatesv1.CertificateSigningRequest) string {
	typeOf := func(c *certificatesv1.CertificateSigningRequestCondition) certificatesv1.RequestConditionType {
		return c.Type
	}
	has := func(want certificatesv1.RequestConditionType) bool {
		return condition(r.Status.Conditions, typeOf, want) != nil
	}
	status := "Pending"
	switch {
	case has(certificatesv1.CertificateDenied):
		status = "Denied"
	case has(certificatesv1.CertificateApproved):
		status = "Approved"
	}
	if has(certificatesv1.CertificateFailed) {
		status += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		status += ",Issued"
	}
	return status
}

func clusterTrustBundles() layout {
	return table(func(b *certificatesv1.ClusterTrustBundle, _ time.Time) []any {
		return []any{b.Name, or(b.Spec.SignerName, none)}
	}, nameColumn, text("SignerName", "The signer whose roots the bundle holds."))
}
