package networking

import (
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func ingressRules() define.Rules[*networkingv1.Ingress] {
	return define.Rules[*networkingv1.Ingress]{
		Validate:       validateIngress,
		ValidateCreate: validateNewIngress,
	}
}

func validateIngress(ing *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	if ing.Spec.DefaultBackend == nil && len(ing.Spec.Rules) == 0 {
		errs = append(errs, field.Invalid(validate.SpecPath, ing.Spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if ing.Spec.DefaultBackend != nil {
		errs = append(errs, validateIngressBackend(validate.SpecPath.Child("defaultBackend"), ing.Spec.DefaultBackend)...)
	}
	if class := ing.Spec.IngressClassName; class != nil {
		errs = append(errs, validate.Invalid(validate.SpecPath.Child("ingressClassName"), *class, validation.IsDNS1123Subdomain(*class))...)
	}
	for i, tls := range ing.Spec.TLS {
		for j, host := range tls.Hosts {
			errs = append(errs, ingressHost(validate.SpecPath.Child("tls").Index(i).Child("hosts").Index(j), host)...)
		}
	}
	for i, rule := range ing.Spec.Rules {
		at := validate.SpecPath.Child("rules").Index(i)
		if rule.Host != "" {
			errs = append(errs, ingressHost(at.Child("host"), rule.Host)...)
		}
		if rule.HTTP == nil {
			continue
		}
		paths := at.Child("http", "paths")
		if len(rule.HTTP.Paths) == 0 {
			errs = append(errs, field.Required(paths, ""))
		}
		for j := range rule.HTTP.Paths {
			errs = append(errs, validateIngressPath(paths.Index(j), &rule.HTTP.Paths[j])...)
		}
	}
	return errs
}

// validateNewIngress: a new ingress names its class in one way. Old ones may
// have both.
func validateNewIngress(ing *networkingv1.Ingress) field.ErrorList {
	class, annotated := ing.Annotations[ingressClassAnnotation]
	if !annotated || ing.Spec.IngressClassName == nil {
		return nil
	}
	at := field.NewPath("metadata", "annotations").Child(ingressClassAnnotation)
	return field.ErrorList{field.Invalid(at, class, "can not be set when the class field is also set")}
}

// ingressClassAnnotation named the class before the spec did.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

func ingressHost(path *field.Path, host string) field.ErrorList {
	if _, err := netip.ParseAddr(host); err == nil {
		return field.ErrorList{field.Invalid(path, host, "must be a DNS name, not an IP address")}
	}
	if strings.Contains(host, "*") {
		return validate.Invalid(path, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return validate.Invalid(path, host, validation.IsDNS1123Subdomain(host))
}

func validateIngressPath(path *field.Path, p *networkingv1.HTTPIngressPath) field.ErrorList {
	var errs field.ErrorList
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	errs = append(errs, validate.OneOf(path.Child("pathType"), *p.PathType,
		networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)...)
	at := path.Child("path")
	switch {
	case *p.PathType == networkingv1.PathTypeImplementationSpecific && p.Path == "":
	case !strings.HasPrefix(p.Path, "/"):
		errs = append(errs, field.Invalid(at, p.Path, "must be an absolute path"))
	case *p.PathType != networkingv1.PathTypeImplementationSpecific:
		for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, sequence) {
				errs = append(errs, field.Invalid(at, p.Path, "must not contain '"+sequence+"'"))
			}
		}
	}
	return append(errs, validateIngressBackend(path.Child("backend"), &p.Backend)...)
}

func validateIngressBackend(path *field.Path, b *networkingv1.IngressBackend) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return append(validate.Required(path.Child("resource", "kind"), b.Resource.Kind), validate.Required(path.Child("resource", "name"), b.Resource.Name)...)
	case b.Service == nil:
		return field.ErrorList{field.Required(path, "resource or service backend is required")}
	}
	at := path.Child("service")
	errs := validate.RequiredSyntax(at.Child("name"), b.Service.Name, validation.IsDNS1035Label)
	port := b.Service.Port
	switch {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(at, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, validate.Invalid(at.Child("port", "name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs, validate.PortNumber(at.Child("port", "number"), port.Number)...)
	default:
		errs = append(errs, field.Required(at, "port name or number is required"))
	}
	return errs
}

func ingressClassRules() define.Rules[*networkingv1.IngressClass] {
	return define.Rules[*networkingv1.IngressClass]{
		Default: func(c *networkingv1.IngressClass) {
			if c.Spec.Parameters != nil {
				define.SetDefaultPtr(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		},
		Validate: validateIngressClass,
		ValidateUpdate: func(c, old *networkingv1.IngressClass) field.ErrorList {
			return validate.Unchanged(validate.SpecPath.Child("controller"), c.Spec.Controller, old.Spec.Controller)
		},
	}
}

func validateIngressClass(c *networkingv1.IngressClass) field.ErrorList {
	at := validate.SpecPath.Child("controller")
	var errs field.ErrorList
	if c.Spec.Controller == "" {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, validation.IsDomainPrefixedPath(at, c.Spec.Controller)...)
	}
	p := c.Spec.Parameters
	if p == nil {
		return errs
	}
	at = validate.SpecPath.Child("parameters")
	errs = append(errs, validate.Required(at.Child("kind"), p.Kind)...)
	errs = append(errs, validate.Required(at.Child("name"), p.Name)...)
	scope := define.ValueOr(p.Scope, "")
	errs = append(errs, validate.OneOf(at.Child("scope"), scope,
		networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace)...)
	if scope == networkingv1.IngressClassParametersReferenceScopeNamespace && define.ValueOr(p.Namespace, "") == "" {
		errs = append(errs, field.Required(at.Child("namespace"), "`parameters.scope` is set to 'Namespace'"))
	}
	if scope == networkingv1.IngressClassParametersReferenceScopeCluster && p.Namespace != nil {
		errs = append(errs, field.Forbidden(at.Child("namespace"), "`parameters.scope` is set to 'Cluster'"))
	}
	return errs
}
