package certificates

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
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
		PrepareForUpdate:       func(r, old *certificatesv1.CertificateSigningRequest) { r.Spec = old.Spec },
		PrepareForStatusUpdate: keepVerdicts,
		ValidateCreate:         validateSigningRequest, // which nothing changes later
		ValidateStatus:         validateSigningStatus,
		ValidateSubresource:    validateApproval,
	}
}

// usages are what a certificate may be asked for.
var usages = sets.New(
	certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment, certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign,
	certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly, certificatesv1.UsageAny, certificatesv1.UsageServerAuth,
	certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME,
	certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping,
	certificatesv1.UsageOCSPSigning, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
)

func validateSigningRequest(r *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var errs field.ErrorList
	if err := checkCertificateRequest(r.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("request"), r.Spec.Request, err.Error()))
	}
	path := validate.SpecPath.Child("usages")
	if len(r.Spec.Usages) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	for i, usage := range r.Spec.Usages {
		if !usages.Has(usage) {
			errs = append(errs, field.NotSupported(path.Index(i), usage, sets.List(usages)))
		}
	}
	seen := sets.New[certificatesv1.KeyUsage]()
	for i, usage := range r.Spec.Usages {
		if seen.Has(usage) {
			errs = append(errs, field.Duplicate(path.Index(i), usage))
		}
		seen.Insert(usage)
	}
	errs = append(errs, validateSigner(validate.SpecPath.Child("signerName"), r.Spec.SignerName)...)
	if seconds := r.Spec.ExpirationSeconds; seconds != nil && *seconds < minCertificateSeconds {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("expirationSeconds"), *seconds, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

func validateSigner(path *field.Path, name string) field.ErrorList {
	if name == "kubernetes.io/legacy-unknown" { // what requests of v1beta1 without a signer were for
		return field.ErrorList{field.Invalid(path, name, "the legacy signerName is not allowed via this API version")}
	}
	return validate.SignerName(path, name)
}

// verdicts are the conditions that only the approval subresource gives.
var verdicts = []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied}

// lasting are the conditions that nobody takes away.
var lasting = append(slices.Clone(verdicts), certificatesv1.CertificateFailed)

// conditionsOf returns where a request has conditions of a type.
func conditionsOf(r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) (at []int) {
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == kind {
			at = append(at, i)
		}
	}
	return at
}

// keepVerdicts leaves the verdicts as they are, unless there is one more or less, which is refused.
func keepVerdicts(r, old *certificatesv1.CertificateSigningRequest) {
	for _, kind := range verdicts {
		before, now := conditionsOf(old, kind), conditionsOf(r, kind)
		if len(before) != len(now) {
			continue
		}
		for i := range now {
			r.Status.Conditions[now[i]] = old.Status.Conditions[before[i]]
		}
	}
}

var conditionsPath = field.NewPath("status", "conditions")

// validateConditions checks the conditions. What is wrong with the old ones, too, may stay.
func validateConditions(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var errs field.ErrorList
	untyped, repeated := len(conditionsOf(old, "")) > 0, repeatsType(old)
	seen := sets.New[certificatesv1.RequestConditionType]()
	for i, c := range r.Status.Conditions {
		at := conditionsPath.Index(i)
		if c.Type == "" && !untyped {
			errs = append(errs, field.Required(at.Child("type"), ""))
		}
		errs = append(errs, validateConditionStatus(at.Child("status"), c)...)
		if seen.Has(c.Type) && !repeated {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen.Insert(c.Type)
	}
	return errs
}

// tagOfVerdicts refuses a request that is approved and denied, unless it was both before. kube-apiserver
// has this rule in the tags of the type, and reports it last.
func tagOfVerdicts(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	both := func(r *certificatesv1.CertificateSigningRequest) bool {
		return len(conditionsOf(r, certificatesv1.CertificateApproved)) > 0 && len(conditionsOf(r, certificatesv1.CertificateDenied)) > 0
	}
	if !both(r) || both(old) {
		return nil
	}
	return field.ErrorList{field.Invalid(conditionsPath, bothVerdicts, oneVerdict)}
}

// What Kubernetes' declarative validation says of a request that is approved and denied.
const (
	bothVerdicts = `{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}`
	oneVerdict   = "must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`"
)

func validateConditionStatus(at *field.Path, c certificatesv1.CertificateSigningRequestCondition) field.ErrorList {
	allowed := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
	if slices.Contains(lasting, c.Type) {
		allowed = allowed[1:2]
	}
	switch {
	case c.Status == "":
		return field.ErrorList{field.Required(at, "")}
	case !slices.Contains(allowed, c.Status):
		return field.ErrorList{field.NotSupported(at, c.Status, allowed)}
	}
	return nil
}

func repeatsType(r *certificatesv1.CertificateSigningRequest) bool {
	seen := sets.New[certificatesv1.RequestConditionType]()
	for _, c := range r.Status.Conditions {
		seen.Insert(c.Type)
	}
	return len(seen) < len(r.Status.Conditions)
}

// forbidChange refuses that one of the types has fewer conditions than before, or more.
func forbidChange(r, old *certificatesv1.CertificateSigningRequest, verb string, types []certificatesv1.RequestConditionType, changed func(before, now int) bool) field.ErrorList {
	var errs field.ErrorList
	for _, kind := range types {
		if changed(len(conditionsOf(old, kind)), len(conditionsOf(r, kind))) {
			errs = append(errs, field.Forbidden(conditionsPath, fmt.Sprintf("updates may not %s a condition of type %q", verb, kind)))
		}
	}
	return errs
}

func fewer(before, now int) bool { return now < before }
func more(before, now int) bool  { return now > before }

// validateApproval: a verdict stays.
func validateApproval(_ string, r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	return slices.Concat(validateConditions(r, old), forbidChange(r, old, "remove", lasting, fewer), tagOfVerdicts(r, old))
}

// validateSigningStatus: a signer reports, but does not judge.
func validateSigningStatus(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	errs := validateConditions(r, old)
	path := field.NewPath("status", "certificate")
	changed := !bytes.Equal(old.Status.Certificate, r.Status.Certificate)
	if changed && checkCertificate(old.Status.Certificate) == nil {
		if err := checkCertificate(r.Status.Certificate); err != nil {
			errs = append(errs, field.Invalid(path, "<certificate data>", err.Error()))
		}
	}
	errs = append(errs, forbidChange(r, old, "remove", lasting, fewer)...)
	errs = append(errs, forbidChange(r, old, "add", verdicts, more)...)
	if changed && len(old.Status.Certificate) > 0 {
		errs = append(errs, field.Forbidden(path, "updates may not modify existing certificate content"))
	}
	return append(errs, tagOfVerdicts(r, old)...)
}

// checkCertificate checks that there is nothing, or a chain of certificates in PEM (RFC 7468).
func checkCertificate(data []byte) error {
	rest := data
	for blocks := 0; ; blocks++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil && blocks == 0 && len(data) > 0:
			return errors.New("must contain at least one CERTIFICATE PEM block")
		case block == nil:
			return nil
		case block.Type != "CERTIFICATE":
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		case len(block.Headers) != 0:
			return errors.New("no PEM block headers are permitted")
		}
		certificates, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certificates) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
	}
}

// maxModulus is the most bits of an RSA key whose signature is checked; keys of 4096 are long.
const maxModulus = 16 << 10

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
	// To check a signature takes time that grows with the square of the key, minutes for one that fills a body.
	if key, ok := request.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxModulus {
		return fmt.Errorf("the RSA key has a modulus of %d bits, more than %d", key.N.BitLen(), maxModulus)
	}
	return request.CheckSignature()
}
