package certificates

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := certificatesv1.SchemeGroupVersion
	all.Add(gv, "CertificateSigningRequest", certificateSigningRequestLayout())
	all.Add(gv, "ClusterTrustBundle", clusterTrustBundleLayout())
	all.Add(gv, "PodCertificateRequest", podCertificateRequestLayout())
}

func certificateSigningRequestLayout() columns.Layout {
	spec := certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()
	return columns.Table(func(r *certificatesv1.CertificateSigningRequest, now time.Time) []any {
		lifetime := columns.None
		if r.Spec.ExpirationSeconds != nil {
			lifetime = duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
		}
		return []any{
			r.Name, columns.Since(r.CreationTimestamp, now), columns.Or(r.Spec.SignerName, columns.None), r.Spec.Username, lifetime,
			requestStatus(r),
		}
	},
		columns.NameColumn,
		columns.AgeColumn,
		columns.Text("SignerName", spec["signerName"]),
		columns.Text("Requestor", spec["request"]),
		columns.Text("RequestedDuration", spec["expirationSeconds"]),
		columns.Text("Condition", certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"]),
	)
}

// requestStatus: a denial stands even beside an approval.
func requestStatus(r *certificatesv1.CertificateSigningRequest) string {
	typeOf := func(c *certificatesv1.CertificateSigningRequestCondition) certificatesv1.RequestConditionType {
		return c.Type
	}
	has := func(want certificatesv1.RequestConditionType) bool {
		return columns.Condition(r.Status.Conditions, typeOf, want) != nil
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

func clusterTrustBundleLayout() columns.Layout {
	return columns.Table(func(b *certificatesv1.ClusterTrustBundle, _ time.Time) []any {
		return []any{b.Name, columns.Or(b.Spec.SignerName, columns.None)}
	}, columns.NameColumn, columns.Text("SignerName", certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"]))
}

func podCertificateRequestLayout() columns.Layout {
	spec := certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()
	return columns.Table(func(r *certificatesv1.PodCertificateRequest, _ time.Time) []any {
		state := "Pending"
		for _, c := range r.Status.Conditions {
			if slices.Contains(outcomes, c.Type) {
				state = c.Type
			}
		}
		return []any{
			r.Name, r.Spec.PodName, r.Spec.ServiceAccountName, string(r.Spec.NodeName), r.Spec.SignerName, state,
			columns.Or(labels.Set(r.Spec.UnverifiedUserAnnotations).String(), columns.None),
		}
	},
		columns.NameColumn,
		columns.Text("PodName", spec["podName"]),
		columns.Text("ServiceAccountName", spec["serviceAccountName"]),
		columns.Text("NodeName", spec["nodeName"]),
		columns.Text("SignerName", spec["signerName"]),
		columns.Text("State", "Is the request Pending, Issued, Denied, or Failed?"),
		columns.Text("UnverifiedUserAnnotations", spec["unverifiedUserAnnotations"]),
	)
}
