package certificates

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/mail"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

const (
	certificateBlock = "CERTIFICATE" // of PEM

	maxChain = 100 << 10 // bytes
	// refreshMargin is how long after a certificate begins, and before it ends, its refresh
	// begins.
	refreshMargin = 10 * time.Minute
)

// outcomes are the conditions that a signer may set, and of which one ends the request.
var outcomes = []string{
	certificatesv1.PodCertificateRequestConditionTypeIssued,
	certificatesv1.PodCertificateRequestConditionTypeDenied,
	certificatesv1.PodCertificateRequestConditionTypeFailed,
}

var (
	podStatus = field.NewPath("status")
	chainPath = podStatus.Child("certificateChain")
)

// validatePodStatus: a signer ends a request once, with a certificate or without. That its
// certificate begins now, and that it may sign, admission sees.
func validatePodStatus(r, old *certificatesv1.PodCertificateRequest) field.ErrorList {
	if errs := checkOutcomes(r.Status.Conditions); len(errs) > 0 {
		return errs
	}
	outcome := outcomeOf(r)
	switch {
	case outcomeOf(old) != "":
		return sameStatus(r.Status, old.Status, "immutable after PodCertificateRequest is issued, denied, or failed")
	case outcome == "":
		return sameStatus(r.Status, old.Status, `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case outcome == certificatesv1.PodCertificateRequestConditionTypeIssued:
		return checkIssued(r)
	}
	return sameStatus(r.Status, certificatesv1.PodCertificateRequestStatus{Conditions: r.Status.Conditions},
		"non-condition status fields must be empty when denying or failing the PodCertificateRequest")
}

func sameStatus(status, want certificatesv1.PodCertificateRequestStatus, otherwise string) field.ErrorList {
	if !equality.Semantic.DeepEqual(status, want) {
		return field.ErrorList{field.Invalid(podStatus, field.OmitValueType{}, otherwise)}
	}
	return nil
}

// outcomeOf returns how a request ended; "" while it has not.
func outcomeOf(r *certificatesv1.PodCertificateRequest) string {
	for _, c := range r.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			return c.Type // there are no others
		}
	}
	return ""
}

func checkOutcomes(conditions []metav1.Condition) field.ErrorList {
	var errs field.ErrorList
	known := 0
	for i, c := range conditions {
		// The form of the path is kube-apiserver's.
		at := podStatus.Child("conditions", fmt.Sprintf("[%d]", i))
		switch c.Type {
		case outcomes[0], outcomes[1], outcomes[2]:
			if known++; known > 1 {
				errs = append(errs, field.Invalid(at.Child("type"), c.Type, `There may be at most one condition with type "Issued", "Denied", or "Failed"`))
			}
			if c.Status != metav1.ConditionTrue {
				errs = append(errs, field.NotSupported(at.Child("status"), c.Status, []metav1.ConditionStatus{metav1.ConditionTrue}))
			}
		default:
			errs = append(errs, field.NotSupported(at.Child("type"), c.Type, outcomes))
		}
	}
	return append(errs, metavalidation.ValidateConditions(conditions, podStatus.Child("conditions"))...)
}

// checkIssued checks the chain of certificates that a signer has made, and that the times in the
// status are those of its first one.
func checkIssued(r *certificatesv1.PodCertificateRequest) field.ErrorList {
	leaf, rest, errs := readLeaf(r.Status.CertificateChain)
	if leaf == nil {
		return errs
	}
	errs = checkNames(leaf)
	request, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request)
	if err != nil {
		return append(errs, field.Invalid(field.NewPath("spec", "stubPKCS10Request"), field.OmitValueType{}, "must be a valid PKCS#10 CSR"))
	}
	if key, ok := request.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); ok && !key.Equal(leaf.PublicKey) {
		return append(errs, field.Invalid(chainPath, r.Status.CertificateChain, "leaf certificate was not issued to the requested public key"))
	}
	if errs = append(errs, requireTimes(&r.Status)...); len(errs) > 0 {
		return errs
	}
	if errs = checkTimes(r, leaf); len(errs) > 0 {
		return errs
	}
	return checkIntermediates(r.Status.CertificateChain, rest)
}

// readLeaf reads the first of the PEM blocks of certificates, and returns it with the others; nil if it cannot be read.
func readLeaf(chain string) (leaf *x509.Certificate, rest []byte, errs field.ErrorList) {
	if len(chain) > maxChain {
		return nil, nil, field.ErrorList{field.TooLong(chainPath, chain, maxChain)}
	}
	block, rest := pem.Decode([]byte(chain))
	switch {
	case block == nil:
		return nil, nil, refuseChain(chain, "issued certificate chain must contain at least one certificate")
	case block.Type != certificateBlock:
		return nil, nil, refuseChain(chain, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, refuseChain(chain, "leaf certificate does not parse as valid X.509")
	}
	return leaf, rest, nil
}

// checkIntermediates checks the PEM blocks behind the first, which kube-apiserver looks at last.
func checkIntermediates(chain string, others []byte) field.ErrorList {
	for block, rest := pem.Decode(others); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			// The spelling is kube-apiserver's.
			return refuseChain(chain, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return refuseChain(chain, "intermediate certificate does not parse as valid X.509")
		}
	}
	return nil
}

func refuseChain(chain, why string) field.ErrorList {
	return field.ErrorList{field.Invalid(chainPath, chain, why)}
}

// checkNames refuses names in a certificate that verifiers understand in several ways.
func checkNames(leaf *x509.Certificate) field.ErrorList {
	var errs field.ErrorList
	for _, name := range leaf.DNSNames {
		if name == "" {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate should not contain empty DNSName"))
		}
		if strings.Contains(name, "..") {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate's DNSName should not contain '..'"))
		}
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate's DNSName should not start or end with '.'"))
		}
	}
	for _, address := range leaf.EmailAddresses {
		if _, err := mail.ParseAddress(address); err != nil {
			errs = append(errs, field.Invalid(chainPath, address, "leaf certificate should not contain invalid EmailAddress"))
		}
	}
	return errs
}

func requireTimes(s *certificatesv1.PodCertificateRequestStatus) field.ErrorList {
	const consistent = "must be present and consistent with the issued certificate"
	var errs field.ErrorList
	for _, t := range []struct {
		member string
		value  *metav1.Time
		why    string
	}{
		{"notBefore", s.NotBefore, consistent},
		{"notAfter", s.NotAfter, consistent},
		{"beginRefreshAt", s.BeginRefreshAt, "must be present and in the range [notbefore+10min, notafter-10min]"},
	} {
		if t.value == nil {
			errs = append(errs, field.Required(podStatus.Child(t.member), t.why))
		}
	}
	return errs
}

// checkTimes reports the first time that is wrong.
func checkTimes(r *certificatesv1.PodCertificateRequest, leaf *x509.Certificate) field.ErrorList {
	begin, end, refresh := r.Status.NotBefore.Time, r.Status.NotAfter.Time, r.Status.BeginRefreshAt.Time
	life, most := leaf.NotAfter.Sub(leaf.NotBefore), define.ValueOr(r.Spec.MaxExpirationSeconds, defaultPodSeconds)
	at := podStatus.Child("beginRefreshAt")
	switch {
	case !begin.Equal(leaf.NotBefore):
		return field.ErrorList{field.Invalid(podStatus.Child("notBefore"), begin, "must be set to the NotBefore time encoded in the leaf certificate")}
	case !end.Equal(leaf.NotAfter):
		return field.ErrorList{field.Invalid(podStatus.Child("notAfter"), end, "must be set to the NotAfter time encoded in the leaf certificate")}
	case life < time.Hour:
		return field.ErrorList{field.Invalid(chainPath, life, "leaf certificate lifetime must be >= 1 hour")}
	case life > time.Duration(most)*time.Second:
		return field.ErrorList{field.Invalid(chainPath, life, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", most))}
	case refresh.Before(begin.Add(refreshMargin)):
		return field.ErrorList{field.Invalid(at, refresh, "must be at least 10 minutes after status.notBefore")}
	case refresh.After(end.Add(-refreshMargin)):
		return field.ErrorList{field.Invalid(at, refresh, "must be at least 10 minutes before status.notAfter")}
	}
	return nil
}
