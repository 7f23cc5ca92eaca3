package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	// maxTrustBundle is how many bytes a bundle may have.
	maxTrustBundle = 1 << 20
	// omitted stands in errors for certificates, which are long and say nothing to a reader.
	omitted = "<value omitted>"
)

func trustBundleRules() define.Rules[*certificatesv1.ClusterTrustBundle] {
	return define.Rules[*certificatesv1.ClusterTrustBundle]{
		NameRule: trustBundleName,
		Validate: func(b *certificatesv1.ClusterTrustBundle) field.ErrorList {
			if b.Spec.SignerName == "" {
				return nil
			}
			return validate.SignerName(validate.SpecPath.Child("signerName"), b.Spec.SignerName)
		},
		ValidateCreate: func(b *certificatesv1.ClusterTrustBundle) field.ErrorList {
			return checkTrustBundle(b.Spec.TrustBundle)
		},
		ValidateUpdate: func(b, old *certificatesv1.ClusterTrustBundle) field.ErrorList {
			var errs field.ErrorList
			// One that stays is not read again: a later Go may read certificates more strictly.
			if b.Spec.TrustBundle != old.Spec.TrustBundle {
				errs = checkTrustBundle(b.Spec.TrustBundle)
			}
			return append(errs, validate.Unchanged(validate.SpecPath.Child("signerName"), b.Spec.SignerName, old.Spec.SignerName)...)
		},
	}
}

// trustBundleName returns the rule for the name of a bundle: that of a signer begins with the
// signer's name, in which a colon stands for the slash, and another colon.
func trustBundleName(b *certificatesv1.ClusterTrustBundle) apivalidation.ValidateNameFunc {
	signer := b.Spec.SignerName
	return func(name string, prefix bool) []string {
		if signer == "" {
			if strings.Contains(name, ":") {
				return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
			}
			return apivalidation.NameIsDNSSubdomain(name, prefix)
		}
		start := strings.ReplaceAll(signer, "/", ":") + ":"
		rest, ok := strings.CutPrefix(name, start)
		if !ok {
			return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, start)}
		}
		return apivalidation.NameIsDNSSubdomain(rest, prefix)
	}
}

// checkTrustBundle reads PEM blocks, each with the certificate of an authority, and no two the same.
// All that is wrong is said; which certificates are missing or there twice only if each can be read.
func checkTrustBundle(bundle string) field.ErrorList {
	at := validate.SpecPath.Child("trustBundle")
	if len(bundle) > maxTrustBundle {
		return field.ErrorList{field.TooLong(at, "", maxTrustBundle)}
	}
	var errs field.ErrorList
	var order []string           // the contents of the blocks, as they come
	places := map[string][]int{} // of each content, among all blocks
	index := 0
	for block, rest := pem.Decode([]byte(bundle)); block != nil; block, rest = pem.Decode(rest) {
		if problem := checkAuthority(block); problem != "" {
			errs = append(errs, field.Invalid(at, omitted, fmt.Sprintf("entry %d %s", index, problem)))
		} else {
			content := string(block.Bytes)
			if places[content] == nil {
				order = append(order, content)
			}
			places[content] = append(places[content], index)
		}
		index++
	}
	switch {
	case len(errs) > 0:
		return errs
	case len(order) == 0:
		return field.ErrorList{field.Invalid(at, omitted, "at least one trust anchor must be provided")}
	}
	for _, content := range order {
		if len(places[content]) > 1 {
			errs = append(errs, field.Invalid(at, omitted, fmt.Sprintf("duplicate trust anchor (indices %v)", places[content])))
		}
	}
	return errs
}

// checkAuthority returns what is wrong with a block that should be the certificate of an authority.
func checkAuthority(block *pem.Block) string {
	if block.Type != certificateBlock {
		return "has bad block type: " + block.Type
	}
	if len(block.Headers) > 0 {
		return "has PEM block headers"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !certificate.IsCA:
		return "does not have the CA bit set"
	case !certificate.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}
