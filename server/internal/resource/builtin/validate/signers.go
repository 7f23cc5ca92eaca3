package validate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SignerName checks the name of a signer of certificates: a domain, and a path below it that may be
// made of the names of a namespace and of an object.
func SignerName(path *field.Path, name string) field.ErrorList {
	const maxDomain = validation.DNS1123SubdomainMaxLength
	const maxName = maxDomain + len("/") + validation.DNS1123LabelMaxLength + len(".") + validation.DNS1123SubdomainMaxLength
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, found := strings.Cut(name, "/")
	if !found || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	var errs field.ErrorList
	if len(domain) > maxDomain {
		errs = append(errs, field.TooLong(path, "", maxDomain))
	}
	errs = append(errs, labelsOf(path, domain, validation.IsDNS1123Label)...)
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	errs = append(errs, labelsOf(path, rest, validation.IsDNS1123Subdomain)...)
	if len(name) > maxName {
		errs = append(errs, field.TooLong(path, "", maxName))
	}
	return errs
}

// labelsOf checks the parts of a name between dots, up to the first that is wrong.
func labelsOf(path *field.Path, name string, syntax func(string) []string) field.ErrorList {
	for label := range strings.SplitSeq(name, ".") {
		var errs field.ErrorList
		for _, message := range syntax(label) {
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("validating label %q: %s", label, message)))
		}
		if len(errs) > 0 {
			return errs
		}
	}
	return nil
}

// IsKubernetesSigner reports whether the name of a signer is one of Kubernetes' own.
func IsKubernetesSigner(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
}
