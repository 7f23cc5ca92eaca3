// Package certificates defines CertificateSigningRequests.
package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[certificatesv1.CertificateSigningRequest, certificatesv1.CertificateSigningRequestList](certificatesv1.SchemeGroupVersion, define.Kind{
			Name: "CertificateSigningRequest", Plural: "certificatesigningrequests", NameRule: anyName, ShortNames: []string{"csr"}, Cluster: true, Status: true, NoGeneration: true,
			Fields: define.Fields("spec.signerName"),
			// Nobody owns a request, which never changes, and only the approval's writers its conditions.
			Unowned: map[string][]string{"": {"spec", "status"}, "status": {"spec", "status.conditions"}, "approval": {"spec", "status.certificate"}},
		}, signingRequestRules()),
	}
}

// anyName: whatever can be a name in a path names a request.
func anyName(string, bool) []string { return nil }
