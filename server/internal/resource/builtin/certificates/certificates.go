// Package certificates defines the kinds of certificates.k8s.io: CertificateSigningRequests,
// ClusterTrustBundles and PodCertificateRequests.
package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := certificatesv1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[certificatesv1.CertificateSigningRequest, certificatesv1.CertificateSigningRequestList](gv, define.Kind{
			Name: "CertificateSigningRequest", Plural: "certificatesigningrequests", NameRule: validate.AnyName, ShortNames: []string{"csr"}, Cluster: true, Status: true, NoGeneration: true,
			Fields: define.Fields("spec.signerName"),
			// Nobody owns a request, which never changes, and only the approval's writers its conditions.
			Unowned: map[string][]string{"": {"spec", "status"}, "status": {"spec", "status.conditions"}, "approval": {"spec", "status.certificate"}},
		}, signingRequestRules()),
		define.Resource[certificatesv1.ClusterTrustBundle, certificatesv1.ClusterTrustBundleList](gv, define.Kind{
			Name: "ClusterTrustBundle", Plural: "clustertrustbundles", NamesBeforeFinalizers: true, StoredIn: []string{"v1beta1"}, Cluster: true, NoGeneration: true, ConditionalOnly: true,
			Fields: define.Fields("spec.signerName"),
		}, trustBundleRules()),
		define.Resource[certificatesv1.PodCertificateRequest, certificatesv1.PodCertificateRequestList](gv, define.Kind{
			Name: "PodCertificateRequest", Plural: "podcertificaterequests", StoredIn: []string{"v1beta1"}, NameRuleForNew: true, Status: true, StatusKeeps: resource.AllMetadata, NoGeneration: true, ConditionalOnly: true,
			Fields:      define.Fields("spec.signerName", "spec.podName", "spec.nodeName"),
			FieldLabels: resource.FieldLabels{NoNamespace: true},
		}, podRequestRules()),
	}
}
