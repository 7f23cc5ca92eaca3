package networking

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// ingressClassAnnotation named the class before the spec did.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

func ingressRules() define.Rules[*networkingv1.Ingress] {
	return define.Rules[*networkingv1.Ingress]{
		ValidateCreate: func(ing *networkingv1.Ingress) field.ErrorList {
			return append(validateIngress(&ing.Spec, oldIngress{}), validateClassNames(ing)...)
		},
		ValidateUpdate: func(ing, old *networkingv1.Ingress) field.ErrorList {
			return validateIngress(&ing.Spec, allowedBefore(&old.Spec))
		},
		ValidateStatus: validateIngressStatus,
		StatusWarnings: func(ing *networkingv1.Ingress) []string {
			var warnings []string
			at := field.NewPath("status", "loadBalancer", "ingress")
			for i, ingress := range ing.Status.LoadBalancer.Ingress {
				if ingress.IP != "" {
					warnings = append(warnings, validation.GetWarningsForIP(at.Index(i), ingress.IP)...)
				}
			}
			return warnings
		},
		Warnings: func(ing, old *networkingv1.Ingress) []string {
			if _, annotated := ing.Annotations[ingressClassAnnotation]; !annotated || ing.Spec.IngressClassName != nil || old != nil {
				return nil
			}
			return []string{`annotation "` + ingressClassAnnotation + `" is deprecated, please use 'spec.ingressClassName' instead`}
		},
	}
}

// oldIngress is what an ingress may have because it had it before there was a rule.
type oldIngress struct {
	wrongSecrets, wrongWildcards bool
}

func allowedBefore(spec *networkingv1.IngressSpec) oldIngress {
	return oldIngress{
		wrongSecrets: slices.ContainsFunc(spec.TLS, func(tls networkingv1.IngressTLS) bool { return len(wrongSecret(tls.SecretName)) > 0 }),
		wrongWildcards: slices.ContainsFunc(spec.Rules, func(rule networkingv1.IngressRule) bool {
			return strings.Contains(rule.Host, "*") && len(validateIngressPaths(nil, rule.HTTP)) > 0
		}),
	}
}

func wrongSecret(name string) []string {
	if name == "" {
		return nil
	}
	return validation.IsDNS1123Subdomain(name)
}

func validateIngress(spec *networkingv1.IngressSpec, old oldIngress) field.ErrorList {
	var errs field.ErrorList
	if spec.DefaultBackend == nil && len(spec.Rules) == 0 {
		errs = append(errs, field.Invalid(validate.SpecPath, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, validateIngressBackend(validate.SpecPath.Child("defaultBackend"), spec.DefaultBackend)...)
	}
	for i, rule := range spec.Rules {
		at := validate.SpecPath.Child("rules").Index(i)
		if rule.Host != "" {
			errs = append(errs, validate.NotAddress(at.Child("host"), rule.Host)...)
			errs = append(errs, ingressHost(at.Child("host"), rule.Host)...)
		}
		if !old.wrongWildcards || !strings.Contains(rule.Host, "*") {
			errs = append(errs, validateIngressPaths(at.Child("http", "paths"), rule.HTTP)...)
		}
	}
	for i, tls := range spec.TLS {
		at := validate.SpecPath.Child("tls").Index(i)
		for j, host := range tls.Hosts {
			errs = append(errs, ingressHost(at.Child("hosts").Index(j), host)...)
		}
		if !old.wrongSecrets {
			errs = append(errs, validate.Invalid(at.Child("secretName"), tls.SecretName, wrongSecret(tls.SecretName))...)
		}
	}
	if class := spec.IngressClassName; class != nil {
		errs = append(errs, validate.Invalid(validate.SpecPath.Child("ingressClassName"), *class, validation.IsDNS1123Subdomain(*class))...)
	}
	return errs
}

// validateClassNames: a new ingress that names its class in both ways names the same. Old ones may differ.
func validateClassNames(ing *networkingv1.Ingress) field.ErrorList {
	class, annotated := ing.Annotations[ingressClassAnnotation]
	if !annotated || ing.Spec.IngressClassName == nil || *ing.Spec.IngressClassName == class {
		return nil
	}
	at := field.NewPath("annotations").Child(ingressClassAnnotation) // kube-apiserver's path
	return field.ErrorList{field.Invalid(at, class, "must match `ingressClassName` when both are specified")}
}

func ingressHost(path *field.Path, host string) field.ErrorList {
	if strings.Contains(host, "*") {
		return validate.Invalid(path, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return validate.Invalid(path, host, validation.IsDNS1123Subdomain(host))
}

func validateIngressPaths(path *field.Path, http *networkingv1.HTTPIngressRuleValue) field.ErrorList {
	switch {
	case http == nil:
		return nil
	case len(http.Paths) == 0:
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for i := range http.Paths {
		errs = append(errs, validateIngressPath(path.Index(i), &http.Paths[i])...)
	}
	return errs
}

func validateIngressPath(path *field.Path, p *networkingv1.HTTPIngressPath) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	errs := validate.Supported(path.Child("pathType"), *p.PathType, networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
	if len(errs) == 0 {
		for _, wrong := range wrongPath(*p.PathType, p.Path) {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, wrong))
		}
	}
	return append(errs, validateIngressBackend(path.Child("backend"), &p.Backend)...)
}

// wrongPath says what is wrong with a path of a type.
func wrongPath(pathType networkingv1.PathType, path string) []string {
	var wrong []string
	free := pathType == networkingv1.PathTypeImplementationSpecific
	if !strings.HasPrefix(path, "/") && (path != "" || !free) {
		wrong = append(wrong, "must be an absolute path")
	}
	if free {
		return wrong
	}
	for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(path, sequence) {
			wrong = append(wrong, "must not contain '"+sequence+"'")
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(path, end) {
			wrong = append(wrong, "cannot end with '"+end+"'")
		}
	}
	return wrong
}

func validateIngressBackend(path *field.Path, b *networkingv1.IngressBackend) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return validateResource(path.Child("resource"), b.Resource)
	case b.Service == nil:
		return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
	}
	at, port := path.Child("service"), b.Service.Port
	errs := validate.RequiredSyntax(at.Child("name"), b.Service.Name, func(name string) []string { return apivalidation.NameIsDNSLabel(name, false) })
	switch {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, validate.Invalid(at.Child("port", "name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs, validate.PortNumber(at.Child("port", "number"), port.Number)...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

func validateResource(path *field.Path, r *corev1.TypedLocalObjectReference) field.ErrorList {
	var errs field.ErrorList
	if r.APIGroup != nil {
		errs = validate.Invalid(path.Child("apiGroup"), *r.APIGroup, validation.IsDNS1123Subdomain(*r.APIGroup))
	}
	errs = append(errs, validate.RequiredSyntax(path.Child("kind"), r.Kind, content.IsPathSegmentName)...)
	return append(errs, validate.RequiredSyntax(path.Child("name"), r.Name, content.IsPathSegmentName)...)
}

// validateIngressStatus checks the addresses that a controller reports. Those that were there
// before may have any form that was allowed then.
func validateIngressStatus(ing, old *networkingv1.Ingress) field.ErrorList {
	before := sets.New[string]()
	for _, ingress := range old.Status.LoadBalancer.Ingress {
		before.Insert(ingress.IP)
	}
	var errs field.ErrorList
	for i, ingress := range ing.Status.LoadBalancer.Ingress {
		at := field.NewPath("status", "loadBalancer", "ingress").Index(i)
		if ingress.IP != "" && !before.Has(ingress.IP) {
			errs = append(errs, validate.IP(at.Child("ip"), ingress.IP)...)
		}
		if ingress.Hostname != "" {
			errs = append(errs, validate.Invalid(at.Child("hostname"), ingress.Hostname, validation.IsDNS1123Subdomain(ingress.Hostname))...)
			errs = append(errs, validate.NotAddress(at.Child("hostname"), ingress.Hostname)...)
		}
	}
	return errs
}
