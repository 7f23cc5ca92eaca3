package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const maxController = 250

func ingressClassRules() define.Rules[*networkingv1.IngressClass] {
	return define.Rules[*networkingv1.IngressClass]{
		Default: func(c *networkingv1.IngressClass) {
			if c.Spec.Parameters != nil {
				define.SetDefaultPtr(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		},
		ValidateUnchanged: func(c, old *networkingv1.IngressClass) field.ErrorList {
			return validate.Unchanged(validate.SpecPath.Child("controller"), c.Spec.Controller, old.Spec.Controller)
		},
		Validate: validateIngressClass,
	}
}

func validateIngressClass(c *networkingv1.IngressClass) field.ErrorList {
	var errs field.ErrorList
	controller := validate.SpecPath.Child("controller")
	if len(c.Spec.Controller) > maxController {
		errs = append(errs, field.TooLong(controller, "", maxController))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(controller, c.Spec.Controller)...)
	p, at := c.Spec.Parameters, validate.SpecPath.Child("parameters")
	if p == nil {
		return errs
	}
	errs = append(errs, validateReference(at, p.APIGroup, p.Kind, p.Name)...)
	errs = append(errs, validateScope(at, p)...)
	// kube-apiserver has these rules in the tags of the type, and reports them last.
	return append(errs, requireReference(at, p.Kind, p.Name)...)
}

func validateScope(at *field.Path, p *networkingv1.IngressClassParametersReference) field.ErrorList {
	const cluster, namespace = networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace
	scope := define.ValueOr(p.Scope, "")
	switch path := at.Child("namespace"); {
	case scope == namespace && p.Namespace == nil:
		return field.ErrorList{field.Required(path, "`parameters.scope` is set to 'Namespace'")}
	case scope == namespace:
		return validate.Invalid(path, *p.Namespace, validation.IsDNS1123Label(*p.Namespace))
	case scope == cluster && p.Namespace != nil:
		return field.ErrorList{field.Forbidden(path, "`parameters.scope` is set to 'Cluster'")}
	}
	return validate.Supported(at.Child("scope"), scope, cluster, namespace)
}

// validateReference checks what a reference to an object of any kind says; requireReference, that
// it says it.
func validateReference(at *field.Path, group *string, kind, name string) field.ErrorList {
	var errs field.ErrorList
	if group != nil {
		errs = validate.Invalid(at.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group))
	}
	errs = append(errs, validate.Invalid(at.Child("kind"), kind, content.IsPathSegmentName(kind))...)
	return append(errs, validate.Invalid(at.Child("name"), name, content.IsPathSegmentName(name))...)
}

func requireReference(at *field.Path, kind, name string) field.ErrorList {
	return append(validate.Required(at.Child("kind"), kind), validate.Required(at.Child("name"), name)...)
}
