package noderestriction

import (
	"crypto/x509"
	"encoding/pem"
	"errors"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// checkCertificateRequest refuses requests for the certificates of other nodes. Everything
// else about them is the signer's to check.
func (w *write) checkCertificateRequest() error {
	request, ok := w.Object.(*certificatesv1.CertificateSigningRequest)
	if w.Operation != registry.Create || !ok {
		return nil
	}
	if s := request.Spec.SignerName; s != certificatesv1.KubeletServingSignerName && s != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	parsed, err := parse(request.Spec.Request)
	if err != nil {
		return w.forbid("unable to parse csr: %w", err)
	}
	if parsed.Subject.CommonName != w.user.Name {
		return w.forbid("can only create a node CSR with CN=%s", w.user.Name)
	}
	return nil
}

func parse(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
