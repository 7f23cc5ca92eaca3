package certificates

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	// How long the certificate of a pod may be valid, in seconds.
	defaultPodSeconds   int32 = 24 * 60 * 60
	minPodSeconds       int32 = 60 * 60
	maxPodSeconds       int32 = 91 * 24 * 60 * 60
	maxKubernetesSigner int32 = 24 * 60 * 60 // of Kubernetes' own signers

	maxUID         = 128
	maxStubRequest = 10 << 10 // bytes
)

func podRequestRules() define.Rules[*certificatesv1.PodCertificateRequest] {
	return define.Rules[*certificatesv1.PodCertificateRequest]{
		Default: func(r *certificatesv1.PodCertificateRequest) {
			define.SetDefaultPtr(&r.Spec.MaxExpirationSeconds, defaultPodSeconds)
		},
		PrepareForCreate: func(r *certificatesv1.PodCertificateRequest) {
			r.Status = certificatesv1.PodCertificateRequestStatus{}
		},
		ValidateCreate: validatePodRequest,
		ValidateUpdate: func(r, old *certificatesv1.PodCertificateRequest) field.ErrorList {
			return validate.Unchanged(validate.SpecPath, r.Spec, old.Spec)
		},
		ValidateStatus: validatePodStatus,
	}
}

func validatePodRequest(r *certificatesv1.PodCertificateRequest) field.ErrorList {
	errs := validate.SignerName(validate.SpecPath.Child("signerName"), r.Spec.SignerName)
	errs = append(errs, checkUserAnnotations(validate.SpecPath.Child("unverifiedUserAnnotations"), r.Spec.UnverifiedUserAnnotations)...)
	for _, of := range []struct {
		member, name string
		uid          types.UID
	}{
		{"pod", r.Spec.PodName, r.Spec.PodUID},
		{"serviceAccount", r.Spec.ServiceAccountName, r.Spec.ServiceAccountUID},
		{"node", string(r.Spec.NodeName), r.Spec.NodeUID},
	} {
		name, uid := validate.SpecPath.Child(of.member+"Name"), validate.SpecPath.Child(of.member+"UID")
		errs = append(errs, validate.Invalid(name, of.name, apivalidation.NameIsDNSSubdomain(of.name, false))...)
		switch {
		case of.uid == "":
			errs = append(errs, field.Invalid(uid, of.uid, "must not be empty"))
		case len(of.uid) > maxUID:
			errs = append(errs, field.TooLong(uid, of.uid, maxUID))
		}
	}
	most := maxPodSeconds
	if validate.IsKubernetesSigner(r.Spec.SignerName) {
		most = maxKubernetesSigner
	}
	if n := define.ValueOr(r.Spec.MaxExpirationSeconds, defaultPodSeconds); n < minPodSeconds || n > most {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("maxExpirationSeconds"), n, fmt.Sprintf("must be in the range [%d, %d]", minPodSeconds, most)))
	}
	if len(r.Spec.StubPKCS10Request) == 0 {
		// The other form is of older versions, and named because clients know the sentence.
		return append(errs, field.Invalid(validate.SpecPath, field.OmitValueType{}, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"))
	}
	return append(errs, checkStubRequest(r.Spec.StubPKCS10Request)...)
}

func checkUserAnnotations(at *field.Path, annotations map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		errs = append(errs, validation.IsDomainPrefixedKey(at, strings.ToLower(key))...)
	}
	if apivalidation.ValidateAnnotationsSize(annotations) != nil {
		errs = append(errs, field.TooLong(at, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return errs
}

// checkStubRequest reads a request in DER, of which only the key and the signature count.
func checkStubRequest(der []byte) field.ErrorList {
	at := validate.SpecPath.Child("stubPKCS10Request")
	if len(der) > maxStubRequest {
		return field.ErrorList{field.TooLong(at, der, maxStubRequest)}
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "must be a valid PKCS#10 CSR")}
	}
	switch key := request.PublicKey.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return field.ErrorList{field.Invalid(at, "curve "+key.Params().Name, "elliptic public keys must use curve P256, P384, or P521")}
		}
	case *rsa.PublicKey:
		if bits := key.Size() * 8; bits != 3072 && bits != 4096 {
			return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")}
		}
	default:
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")}
	}
	if request.CheckSignature() != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "invalid signature")}
	}
	return nil
}
