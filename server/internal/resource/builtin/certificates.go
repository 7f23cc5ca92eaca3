package builtin

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func certificatesResources() []*resource.Resource {
	return []*resource.Resource{
		define[certificatesv1.CertificateSigningRequest, certificatesv1.CertificateSigningRequestList](certificatesv1.SchemeGroupVersion, kind{
			Name: "CertificateSigningRequest", Plural: "certificatesigningrequests", ShortNames: []string{"csr"}, Cluster: true, Status: true, NoGeneration: true,
			Fields: fields("spec.signerName"),
		}, signingRequestRules()),
	}
}
