package builtin

import (
	"crypto/x509"
	"encoding/pem"
	"errors"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// minCertificateSeconds is the shortest life that may be asked for.
const minCertificateSeconds int32 = 600

func signingRequestRules() rules[*certificatesv1.CertificateSigningRequest] {
	return rules[*certificatesv1.CertificateSigningRequest]{
		Validate: validateSigningRequest,
		ValidateUpdate: func(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
			if !equality.Semantic.DeepEqual(r.Spec, old.Spec) {
				return field.ErrorList{field.Invalid(specPath, r.Spec, immutable)}
			}
			return nil
		},
	}
}

func validateSigningRequest(r *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var errs field.ErrorList
	if err := checkCertificateRequest(r.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(specPath.Child("request"), r.Spec.Request, err.Error()))
	}
	errs = append(errs, required(specPath.Child("signerName"), r.Spec.SignerName)...)
	errs = append(errs, atLeast(specPath.Child("expirationSeconds"), r.Spec.ExpirationSeconds, minCertificateSeconds)...)
	usages := specPath.Child("usages")
	if len(r.Spec.Usages) == 0 {
		errs = append(errs, field.Required(usages, ""))
	}
	seen := sets.New[certificatesv1.KeyUsage]()
	for i, usage := range r.Spec.Usages {
		if seen.Has(usage) {
			errs = append(errs, field.Duplicate(usages.Index(i), usage))
		}
		seen.Insert(usage)
	}
	return errs
}

// checkCertificateRequest reads a PEM block with a PKCS#10 request (RFC 2986).
func checkCertificateRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}
