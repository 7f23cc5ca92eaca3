package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// minCertificateSeconds is the shortest life that may be asked for.
const minCertificateSeconds int32 = 600

func signingRequestRules() define.Rules[*certificatesv1.CertificateSigningRequest] {
	return define.Rules[*certificatesv1.CertificateSigningRequest]{
		PrepareForCreate: func(r *certificatesv1.CertificateSigningRequest) {
			r.Status = certificatesv1.CertificateSigningRequestStatus{}
		},
		Validate:            validateSigningRequest,
		ValidateStatus:      validateSigningStatus,
		ValidateSubresource: validateApproval,
		ValidateUpdate: func(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
			if !equality.Semantic.DeepEqual(r.Spec, old.Spec) {
				return field.ErrorList{field.Invalid(validate.SpecPath, r.Spec, validate.Immutable)}
			}
			return nil
		},
	}
}

func validateSigningRequest(r *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var errs field.ErrorList
	if err := checkCertificateRequest(r.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("request"), r.Spec.Request, err.Error()))
	}
	errs = append(errs, validate.SignerName(validate.SpecPath.Child("signerName"), r.Spec.SignerName)...)
	errs = append(errs, validate.AtLeast(validate.SpecPath.Child("expirationSeconds"), r.Spec.ExpirationSeconds, minCertificateSeconds)...)
	usages := validate.SpecPath.Child("usages")
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

// verdicts are the conditions that only the approval subresource gives.
var verdicts = []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied}

func verdict(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == kind {
			return &r.Status.Conditions[i]
		}
	}
	return nil
}

func validateConditions(r *certificatesv1.CertificateSigningRequest) field.ErrorList {
	at := field.NewPath("status", "conditions")
	var errs field.ErrorList
	seen := sets.New[certificatesv1.RequestConditionType]()
	for i, c := range r.Status.Conditions {
		errs = append(errs, validate.Required(at.Index(i).Child("type"), string(c.Type))...)
		switch {
		case c.Status == "":
			errs = append(errs, field.Required(at.Index(i).Child("status"), ""))
		case (slices.Contains(verdicts, c.Type) || c.Type == certificatesv1.CertificateFailed) && c.Status != corev1.ConditionTrue:
			errs = append(errs, field.NotSupported(at.Index(i).Child("status"), c.Status, []corev1.ConditionStatus{corev1.ConditionTrue}))
		}
		if seen.Has(c.Type) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("type"), c.Type))
		}
		seen.Insert(c.Type)
	}
	if seen.HasAll(verdicts...) {
		errs = append(errs, field.Invalid(at, certificatesv1.CertificateDenied, "Approved and Denied conditions are mutually exclusive"))
	}
	return errs
}

// validateApproval: a verdict is given once.
func validateApproval(_ string, r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	errs := validateConditions(r)
	for _, kind := range verdicts {
		if was := verdict(old, kind); was != nil && !equality.Semantic.DeepEqual(was, verdict(r, kind)) {
			errs = append(errs, field.Forbidden(field.NewPath("status", "conditions"), "updates may not remove or change a condition of type \""+string(kind)+"\""))
		}
	}
	return errs
}

// validateSigningStatus: a signer reports, but does not judge.
func validateSigningStatus(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	errs := validateConditions(r)
	for _, kind := range verdicts {
		if !equality.Semantic.DeepEqual(verdict(old, kind), verdict(r, kind)) {
			errs = append(errs, field.Forbidden(field.NewPath("status", "conditions"), "updates may not add or change a condition of type \""+string(kind)+"\""))
		}
	}
	if len(old.Status.Certificate) > 0 && !bytes.Equal(old.Status.Certificate, r.Status.Certificate) {
		errs = append(errs, field.Forbidden(field.NewPath("status", "certificate"), "updates may not modify certificate content once set"))
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
